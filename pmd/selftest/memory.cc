// Remote memory.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "pmd/selftest/parts.hpp"

namespace rio::selftest {
namespace {

using regs::DmaOp;

constexpr uint64_t kRioAddr = 0x1000'0000;
constexpr uint32_t kWindowBytes = 2 * End::kPageBytes;
constexpr uint32_t kDoubleword = 8;

constexpr uint32_t kLocalPage = End::kTxPage;   // of the requester
constexpr uint32_t kRemotePage = End::kRxPage;  // behind the window

const char* op_name(DmaOp op) {
  static constexpr std::array kNames = {"NREAD",
                                        "NWRITE",
                                        "NWRITE_R",
                                        "SWRITE",
                                        "atomic increment",
                                        "atomic decrement",
                                        "atomic set",
                                        "atomic clear",
                                        "atomic swap",
                                        "atomic compare and swap"};
  static_assert(kNames.size() == static_cast<size_t>(DmaOp::kAtomicCswap) + 1);
  return kNames[static_cast<size_t>(op)];
}

struct MemoryTrial {
  uint64_t number;
  DmaOp op;
  uint32_t len_bytes;
  uint32_t remote_offset;
  uint32_t local_offset;
};

std::vector<uint32_t> lengths(bool quick) {
  std::vector<uint32_t> out = {511, 512, 513, 1000, 1024, 2048, 4088, 4095, 4096};
  for (uint32_t len = 1; len <= 264; ++len) {
    if (!quick || len <= 9 || len % 8 == 0 || len >= 255) {
      out.push_back(len);
    }
  }
  return out;
}

std::vector<MemoryTrial> memory_trials(bool quick, const pmd::Caps& caps) {
  std::vector<MemoryTrial> trials;
  for (const DmaOp op : {DmaOp::kNwriteR, DmaOp::kNread, DmaOp::kNwrite, DmaOp::kSwrite}) {
    for (const uint32_t len : lengths(quick)) {
      for (uint32_t offset = 0; offset < kDoubleword; offset += std::max(caps.dma_addr_align, 1u)) {
        const bool whole = len % kDoubleword == 0 && offset == 0;
        if (len > caps.dma_bytes || (op == DmaOp::kSwrite && !whole)) {
          continue;
        }
        // Another offset on this side, so that the card has to shift.
        const uint32_t local =
            op == DmaOp::kSwrite || caps.dma_addr_align >= kDoubleword ? 0 : kDoubleword - offset;
        trials.push_back({trials.size(), op, len, offset, local & (kDoubleword - 1)});
      }
    }
  }
  return trials;
}

/// Opens a window onto the remote pages. @return its index.
uint32_t open_window(const End& to) {
  using pmd::WindowRights;
  const pmd::Window window{
      .rio_addr = kRioAddr,
      .size_bytes = kWindowBytes,
      .iova = to.iova(kRemotePage),
      .rights = WindowRights::kRead | WindowRights::kWrite | WindowRights::kAtomic};
  uint32_t index = 0;
  check(to.pair->windows().open(window, &index), "no inbound window");
  return index;
}

void run_trial(Exchange& exchange, const MemoryTrial& trial) {
  const bool reads = trial.op == DmaOp::kNread;
  uint8_t* const local = exchange.from().va(kLocalPage);
  uint8_t* const remote = exchange.to().va(kRemotePage);
  uint8_t* const source = reads ? remote : local;
  uint8_t* const target = reads ? local : remote;
  const uint32_t from = reads ? trial.remote_offset : trial.local_offset;
  const uint32_t to = reads ? trial.local_offset : trial.remote_offset;
  const Pattern pattern = exchange.pattern(trial.number);
  pattern.fill(source + from, trial.len_bytes);
  std::memset(target, Image::kPoison, kWindowBytes);
  Image image(kWindowBytes);
  image.put(pattern, 0, to, trial.len_bytes, trial.len_bytes);
  const std::string what = std::string(op_name(trial.op)) + " of " +
                           std::to_string(trial.len_bytes) + " bytes at offset " +
                           std::to_string(trial.remote_offset) + " from offset " +
                           std::to_string(trial.local_offset);
  const pmd::DmaRequest request{.rio_addr = kRioAddr + trial.remote_offset,
                                .iova = exchange.from().iova(kLocalPage) + trial.local_offset,
                                .cookie = trial.number,
                                .dest_id = exchange.to().dest_id,
                                .length_bytes = trial.len_bytes,
                                .op = trial.op,
                                .prio = 0};
  exchange.remote(request, what);
  if (trial.op == DmaOp::kNread || trial.op == DmaOp::kNwriteR) {
    image.check(target, what);
    return;
  }
  // NWRITE and SWRITE have no response: their end says that they were sent.
  std::string differs;
  try {
    exchange.wait(what, [&] {
      differs = image.compare(target);
      return differs.empty();
    });
  } catch (const Fault& fault) {
    throw Fault(what + ": " + differs + " (" + fault.what() + ")", fault.rc);
  }
}

/// An atomic operation and what it makes of a value, both cut to its length.
struct AtomicTrial {
  DmaOp op;
  uint32_t before;
  uint32_t operand;  // of a swap; compare value of a compare and swap, which then puts ~operand
  uint32_t after;
};

constexpr std::array kAtomics = {
    AtomicTrial{DmaOp::kAtomicInc, 0x41424344, 0, 0x41424345},
    AtomicTrial{DmaOp::kAtomicDec, 0x41424344, 0, 0x41424343},
    AtomicTrial{DmaOp::kAtomicSet, 0x41424344, 0, 0xFFFFFFFF},
    AtomicTrial{DmaOp::kAtomicClear, 0x41424344, 0, 0},
    AtomicTrial{DmaOp::kAtomicSwap, 0x41424344, 0x12345678, 0x12345678},
    AtomicTrial{DmaOp::kAtomicCswap, 0x41424344, 0x41424344, ~0x41424344u},
    AtomicTrial{DmaOp::kAtomicCswap, 0x41424344, 0x51525354, 0x41424344},
};

/// Words are in host order on both sides.
void store(uint8_t* to, uint32_t value, uint32_t len_bytes) {
  std::memcpy(to, &value, len_bytes);
}

void run_atomic(Exchange& exchange, const AtomicTrial& trial, uint32_t len_bytes, uint32_t offset) {
  const std::string what = std::string(op_name(trial.op)) + " of " + std::to_string(len_bytes) +
                           " bytes at offset " + std::to_string(offset);
  uint8_t* const remote = exchange.to().va(kRemotePage) + offset;
  uint8_t* const local = exchange.from().va(kLocalPage);
  std::memset(exchange.to().va(kRemotePage), Image::kPoison, kDoubleword);
  std::memset(local, Image::kPoison, kDoubleword);
  store(remote, trial.before, len_bytes);
  store(local, trial.operand, len_bytes);
  store(local + len_bytes, ~trial.operand, len_bytes);
  uint8_t expected[kDoubleword];
  std::memcpy(expected, exchange.to().va(kRemotePage), sizeof(expected));
  store(expected + offset, trial.after, len_bytes);
  const pmd::DmaRequest request{.rio_addr = kRioAddr + offset,
                                .iova = exchange.from().iova(kLocalPage),
                                .cookie = offset,
                                .dest_id = exchange.to().dest_id,
                                .length_bytes = len_bytes,
                                .op = trial.op,
                                .prio = 0};
  exchange.remote(request, what);
  if (std::memcmp(expected, exchange.to().va(kRemotePage), sizeof(expected)) != 0) {
    throw Fault(what + " left another value in memory than it should");
  }
  if (std::memcmp(local, &trial.before, len_bytes) != 0) {
    throw Fault(what + " gave a wrong old value");
  }
}

}  // namespace

void try_memory(Exchange& exchange, bool quick) {
  const uint32_t window = open_window(exchange.to());
  const std::vector<MemoryTrial> trials = memory_trials(quick, exchange.from().card->caps());
  for (const MemoryTrial& trial : trials) {
    run_trial(exchange, trial);
    exchange.tally().add(1, trial.len_bytes, trials.size());
  }
  check(exchange.to().pair->windows().close(window), "the inbound window does not close");
}

void try_atomics(Exchange& exchange) {
  (void)open_window(exchange.to());
  for (const AtomicTrial& trial : kAtomics) {
    for (const uint32_t len : {1u, 2u, 4u}) {
      for (uint32_t offset = 0; offset < kDoubleword; offset += len) {
        if (offset % exchange.from().card->caps().dma_addr_align == 0) {
          run_atomic(exchange, trial, len, offset);
          exchange.tally().add(1);
        }
      }
    }
  }
}

}  // namespace rio::selftest
