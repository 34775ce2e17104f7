#include "fpga/model/core/target_engine.hpp"

#include <algorithm>

namespace rio::model {
namespace {

using regs::DmaOp;
using Control = regs::window::Control;

constexpr uint64_t kAddressMask = 0x0000FFFFFFFFFFFFu;

uint32_t right_for(DmaOp op) {
  if (op == DmaOp::kNread) {
    return Control::read.mask();
  }
  return op <= DmaOp::kSwrite ? Control::write.mask() : Control::atomic.mask();
}

}  // namespace

void TargetEngine::read_windows(Pair& pair) {
  namespace w = regs::window;
  const Bar& bar = pair.function->bar;
  const uint32_t q = pair.slot;
  for (uint32_t i = 0; i < regs::kWindowsPerQp; ++i) {
    uint32_t control = bar.load(w::control(q, i));
    Window& window = windows_[pair.number][i];
    if (Control::gen.get(control) == Control::gen.get(window.control)) {
      continue;
    }
    core_.wire->end_leases();
    if (bar.load(w::pasid(q, i)) != 0) {  // no capability of it
      control &= Control::gen.mask();
    }
    window.control = control;
    window.source = bar.load(w::source(q, i));
    window.source_mask = bar.load(w::source_mask(q, i));
    window.key = bar.load(w::key(q, i)) & 0xFFFF;
    window.rio = bar.load64(w::rio_lo(q, i), w::rio_hi(q, i)) & kAddressMask;
    window.size = bar.load64(w::size_lo(q, i), w::size_hi(q, i));
    window.bus = bar.load64(w::bus_lo(q, i), w::bus_hi(q, i));
    core_.fence();
    bar.store(w::status(q, i), control);
  }
}

void TargetEngine::forget(const Pair& pair) {
  core_.wire->end_leases();
  const Bar& bar = pair.function->bar;
  for (uint32_t i = 0; i < regs::kWindowsPerQp; ++i) {
    // Only another generation opens a window after a reset.
    windows_[pair.number][i] = {.control = bar.load(regs::window::control(pair.slot, i)) &
                                           Control::gen.mask()};
    bar.store(regs::window::status(pair.slot, i), 0);
  }
}

TargetEngine::Place TargetEngine::find_long(const InFrame& frame, uint32_t length) {
  const Owner* const owner = core_.owner(frame.dest);
  const uint32_t pair = owner == nullptr ? kNoPair : owner->pair_of_requests;
  const Window* const window = pair == kNoPair ? nullptr : find(frame, length, pair);
  if (window == nullptr) {
    return {};
  }
  const uint64_t before = (frame.address & kAddressMask) - window->rio;
  return {&host_of(pair), window->bus + before, before, window->size - before - length};
}

const TargetEngine::Window* TargetEngine::find(const InFrame& frame, uint32_t length,
                                               uint32_t pair) const {
  const auto op = static_cast<DmaOp>(frame.op);
  const uint64_t addr = frame.address & kAddressMask;
  const auto key = static_cast<uint32_t>(frame.address >> 48);
  for (const Window& window : windows_[pair]) {
    const bool open = Control::enable.get(window.control) != 0 &&
                      (window.control & right_for(op)) != 0 &&
                      ((frame.source ^ window.source) & window.source_mask) == 0 &&
                      (window.key == 0 || window.key == key);
    if (open && length <= window.size && addr >= window.rio &&
        addr - window.rio <= window.size - length) {
      return &window;
    }
  }
  return nullptr;
}

bool TargetEngine::answer(const InFrame& frame, bool has_windows) {
  const auto op = static_cast<DmaOp>(frame.op);
  Frame* response = nullptr;
  if (has_response(op)) {
    const bool data = op != DmaOp::kNwriteR;
    const uint32_t bytes = data && frame.length <= regs::kMessageBytesMax ? frame.length : 0;
    response = responder_.begin(frame, FrameType::kResponse, bytes);
    if (response == nullptr) {
      return false;
    }
  }
  ++core_.counts.rx_packets;
  const Owner* owner = core_.owner(frame.dest);
  const uint32_t pair = owner == nullptr ? kNoPair : owner->pair_of_requests;
  const Window* window = nullptr;
  if (pair == kNoPair) {
    ++core_.counts.rx_unmapped;
  } else if (op <= DmaOp::kAtomicCswap && frame.length >= 1 &&
             frame.length <= regs::kMessageBytesMax) {
    window = has_windows ? find(frame, frame.length, pair) : nullptr;
    if (window == nullptr) {
      core_.event(core_.pairs[pair], regs::EventType::kWindowViolation, frame.source,
                  static_cast<uint32_t>(op),
                  {static_cast<uint32_t>(frame.address), static_cast<uint32_t>(frame.address >> 32),
                   frame.length, 0});
    }
  }
  if (response == nullptr) {
    if (window != nullptr) {
      serve(frame, host_of(pair), *window, nullptr);
    }
    return true;
  }
  response->op = static_cast<uint8_t>(Answer::kError);
  if (window != nullptr && core_.faults.draw(Fault::kRetry)) {
    response->op = static_cast<uint8_t>(Answer::kRetry);
  } else if (window != nullptr && !core_.faults.draw(Fault::kError)) {
    HostPort& host = host_of(pair);
    const uint8_t* const bytes = op == DmaOp::kNread ? readable(frame, host, *window) : nullptr;
    if (bytes != nullptr) {
      response->op = static_cast<uint8_t>(Answer::kDone);
      responder_.send(response, bytes);
      return true;
    }
    serve(frame, host, *window, response);
  }
  if (response->op != static_cast<uint8_t>(Answer::kDone)) {
    response->length = 0;
    core_.counts.rx_errors += response->op == static_cast<uint8_t>(Answer::kError) ? 1 : 0;
  }
  responder_.send(response);
  return true;
}

void TargetEngine::serve(const InFrame& frame, HostPort& host, const Window& window,
                         Frame* response) {
  const uint64_t bus = window.bus + ((frame.address & kAddressMask) - window.rio);
  bool ok = true;
  switch (static_cast<DmaOp>(frame.op)) {
    case DmaOp::kNread:
      host.flush();  // a read pushes earlier posted writes to memory
      ok = host.read(bus, response->payload(), frame.length);
      break;
    case DmaOp::kNwrite:
    case DmaOp::kNwriteR:
    case DmaOp::kSwrite:
      host.write(bus, frame.payload(), frame.length);
      break;
    default:
      ok = atomic(frame, host, bus, response);
  }
  if (response != nullptr && ok) {
    response->op = static_cast<uint8_t>(Answer::kDone);
  }
}

/// The bytes that a read asks for, if they are in one piece; null: serve() gathers them.
const uint8_t* TargetEngine::readable(const InFrame& frame, HostPort& host, const Window& window) {
  host.flush();  // a read pushes earlier posted writes to memory
  const uint64_t bus = window.bus + ((frame.address & kAddressMask) - window.rio);
  return host.large(bus, frame.length, false);
}

bool TargetEngine::atomic(const InFrame& frame, HostPort& host, uint64_t bus, Frame* response) {
  uint32_t old = 0;
  uint32_t operand[2] = {0, 0};
  const bool legal = frame.length == 1 || frame.length == 2 || frame.length == 4;
  if (!legal || (frame.address & (frame.length - 1u)) != 0) {
    return false;
  }
  host.flush();
  if (!host.read(bus, &old, frame.length)) {
    return false;
  }
  const auto op = static_cast<DmaOp>(frame.op);
  if (op == DmaOp::kAtomicSwap || op == DmaOp::kAtomicCswap) {
    std::memcpy(&operand[0], frame.payload(), frame.length);
  }
  if (op == DmaOp::kAtomicCswap) {
    std::memcpy(&operand[1], frame.payload() + frame.length, frame.length);
  }
  uint32_t value = old;
  switch (op) {
    case DmaOp::kAtomicInc:
      value = old + 1;
      break;
    case DmaOp::kAtomicDec:
      value = old - 1;
      break;
    case DmaOp::kAtomicSet:
      value = ~0u;
      break;
    case DmaOp::kAtomicClear:
      value = 0;
      break;
    case DmaOp::kAtomicSwap:
      value = operand[0];
      break;
    default:
      value = old == operand[0] ? operand[1] : old;
  }
  host.write(bus, &value, frame.length);
  std::memcpy(response->payload(), &old, frame.length);
  return true;
}

}  // namespace rio::model
