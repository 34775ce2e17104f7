// Barriers of a broken or hostile host, and notifications of hostile peers. With any contents the
// card accesses mapped memory only, completes each descriptor exactly once, and ends no barrier as
// OK for which an awaited notification has not come.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "tests/fuzz/fuzz_card.hpp"

using namespace rio;
using namespace rio::test;

namespace {

namespace qp = regs::qp;
namespace words = regs::barrier;
constexpr uint32_t kRing = 5;
constexpr uint32_t kPlaces = 1u << FuzzCard::clog2(kRing);
constexpr uint32_t kSlotBit = 1u << 31;

/// The bytes of an input; zeros behind its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  [[nodiscard]] bool empty() const { return left_ == 0; }
  uint8_t byte() {
    if (left_ == 0) {
      return 0;
    }
    --left_;
    return *data_++;
  }
  uint16_t half() { return static_cast<uint16_t>(byte() | byte() << 8); }

 private:
  const uint8_t* data_;
  size_t left_;
};

/// The host of the card, and all its peers.
class World {
 public:
  explicit World(uint8_t options) : card_((options & 1) != 0, (options & 2) != 0 ? 3 : 0) {
    card_.write(words::resend_limit(0), options >> 2 & 3);
    card_.start_all();
    forget_completions();
  }
  void act(Input& in) {
    const uint8_t what = in.byte();
    switch (what % 8) {
      case 0:
      case 1:
        post(in);
        break;
      case 2:
        go(in);
        break;
      case 3:
      case 4:
        tell(2u + in.byte() % 4, in.half());
        break;
      case 5:
        answer(in.byte());
        break;
      case 6:
        restart();
        break;
      default:
        card_.step(what);
    }
    card_.step(2);
    note_sent();
    take();
  }
  void end() {
    stop();
    card_.check();
  }

 private:
  /// A descriptor: either 256 bytes of the input, or one that is likely to be good.
  static regs::BarrierDesc desc(Input& in) {
    regs::BarrierDesc out{};
    if (in.byte() % 4 == 0) {
      std::array<uint8_t, sizeof out> bytes;
      std::generate(bytes.begin(), bytes.end(), [&] { return in.byte(); });
      std::memcpy(static_cast<void*>(&out), bytes.data(), sizeof out);
      return out;
    }
    const uint8_t shape = in.byte();
    const uint32_t rounds = 1 + shape % 4;
    out.control = (shape >> 4 & 3) % 3 | rounds << 4;
    out.group = in.byte() % 4;
    out.epoch = in.byte();
    std::fill(std::begin(out.peers), std::end(out.peers), ~0u);
    for (uint32_t place = 0; place < 2 * rounds; place += 1 + in.byte() % 2) {
      const uint8_t peer = in.byte();
      out.peers[place] = 2u + peer % 4;
      out.send |= uint64_t{(peer & 8) == 0} << place;
      out.await |= uint64_t{(peer & 16) == 0} << place;
    }
    return out;
  }
  void post(Input& in) {
    if (outstanding_.size() >= 16 || !runs_) {
      return;
    }
    const regs::BarrierDesc entry = desc(in);
    std::memcpy(card_.ring(kRing) + static_cast<size_t>(tail_ & 15) * sizeof entry, &entry,
                sizeof entry);
    outstanding_.insert({tail_, entry});
    card_.write(qp::tail(0, kRing), ++tail_);
  }
  void go(Input& in) {
    const uint32_t slot = in.byte() % 16;
    if (outstanding_.count(kSlotBit | slot) != 0 || !runs_) {
      return;
    }
    regs::BarrierDesc entry = desc(in);
    uint32_t copy[64];
    std::memcpy(copy, &entry, sizeof copy);
    for (uint32_t i = 0; i < 64; ++i) {
      card_.write(words::slot(0, 64 * slot + i), copy[i]);
    }
    entry.epoch = *card_.word(words::go(0, slot)) + 1 + in.byte() % 3;
    card_.write(words::go(0, slot), entry.epoch);
    outstanding_.insert({kSlotBit | slot, entry});
  }
  void tell(uint32_t source, uint16_t info) {
    model::Frame frame{};
    frame.type = model::FrameType::kDoorbell;
    frame.source = source;
    frame.dest = FuzzCard::kId;
    frame.tid = static_cast<uint8_t>(info);
    frame.address = info;
    if (card_.send(frame, nullptr, 0, false, true)) {
      came_.insert({source, info});
    }
  }
  void answer(uint8_t how) {
    if (sent_.empty()) {
      return;
    }
    const model::Answer answers[] = {model::Answer::kDone, model::Answer::kRetry,
                                     model::Answer::kError, model::Answer::kDone};
    const model::Frame request = sent_[how % sent_.size()];
    model::Frame frame{};
    frame.type = model::FrameType::kResponse;
    frame.source = request.dest;
    frame.dest = request.source;
    frame.tid = request.tid;
    frame.op = static_cast<uint8_t>(answers[how >> 6]);
    static_cast<void>(card_.send(frame, nullptr, 0, true, true));
  }
  void note_sent() {
    for (const model::Frame& frame : card_.take_sent()) {
      if (frame.type == model::FrameType::kDoorbell) {
        sent_.push_back(frame);
      }
    }
    sent_.erase(sent_.begin(), sent_.end() - std::min<ptrdiff_t>(64, std::ssize(sent_)));
    static_cast<void>(card_.take_answers());
  }
  void stop() {
    card_.write(qp::ring_control(0, kRing), ++gen_);
    runs_ = false;
    for (uint32_t i = 0; i < 100; ++i) {
      card_.step(4);
      note_sent();
      take();
    }
    const uint32_t status = *card_.word(qp::ring_status(0, kRing));
    FuzzCard::require(qp::RingStatus::state.get(status) ==
                      static_cast<uint32_t>(regs::RingState::kStopped));
    FuzzCard::require(outstanding_.empty());
  }
  void restart() {
    stop();
    tail_ = cidx_ = 0;
    card_.write(qp::tail(0, kRing), 0);
    forget_completions();
    card_.write(qp::ring_control(0, kRing), ++gen_ | 1u << 16);
    card_.step(40);
    runs_ = true;
    came_.clear();
  }
  void forget_completions() {
    std::memset(card_.completions(kRing), 0, kPlaces * sizeof(regs::BarrierCpl));
  }
  void take() {
    for (;;) {
      regs::BarrierCpl cpl;
      std::memcpy(&cpl, card_.completions(kRing) + cidx_ % kPlaces * sizeof cpl, sizeof cpl);
      if (cpl.status >> 31 != (~(cidx_ / kPlaces) & 1)) {
        return;
      }
      ++cidx_;
      check(cpl);
    }
  }
  void check(const regs::BarrierCpl& cpl) {
    const auto it = outstanding_.find(cpl.index);
    FuzzCard::require(it != outstanding_.end());  // exactly once
    const regs::BarrierDesc entry = it->second;
    outstanding_.erase(it);
    const auto op = static_cast<regs::BarrierOp>(entry.control & 3);
    FuzzCard::require(cpl.cookie == entry.cookie);
    if ((cpl.status & 0xFF) != 0 || op != regs::BarrierOp::kRun) {
      return;
    }
    for (uint32_t place = 0; place < 40; ++place) {
      const uint32_t info = 0x8000 | entry.group << 8 | (entry.epoch & 7) << 5 | place / 2;
      FuzzCard::require((entry.await >> place & 1) == 0 ||
                        came_.count({entry.peers[place], info}) != 0);
    }
  }

  FuzzCard card_;
  uint32_t gen_ = 1;
  bool runs_ = true;
  uint32_t tail_ = 0;
  uint32_t cidx_ = 0;
  std::map<uint32_t, regs::BarrierDesc> outstanding_;  // by INDEX of the completion
  std::set<std::pair<uint32_t, uint32_t>> came_;       // notifications: source, information
  std::vector<model::Frame> sent_;                     // the card's last notifications
};

}  // namespace

// Input: a byte of options, then acts, each a byte that names the act, and its operands.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  World world(in.byte());
  while (!in.empty()) {
    world.act(in);
  }
  world.end();
  return 0;
}
