#include <algorithm>
#include <memory>

#include "base/log.hpp"
#include "pmd/raw/ops.hpp"
#include "pmd/selftest/parts.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kLinkTimeoutMs = 1000;
constexpr uint32_t kPatienceMs = 5000;
constexpr uint32_t kDoubtsMax = 8;  // see selftest::Rules

/// A queue pair of a device, taken for a test, with its rings open. Faults are off while this
/// lives. Gives all back.
class TestEnd {
 public:
  explicit TestEnd(RawDevice& device)
      : device_(device),
        fault_seed_(device.eal_card().args().emu.model.fault_seed),
        fault_rate_(device.eal_card().args().emu.model.fault_rate) {
    set_fault_rate(0.0);
  }
  ~TestEnd() {
    pair_.reset();  // stops the rings: now the memory is ours
    if (end_.memory.va != nullptr) {
      device_.bus().dma_free(end_.memory);
    }
    if (claimed_) {
      device_.eal_card().shared().release(qp_);
    }
    set_fault_rate(fault_rate_);
  }
  TestEnd(const TestEnd&) = delete;
  TestEnd& operator=(const TestEnd&) = delete;

  /// Take a queue pair that is free. @return 0; -EBUSY: all are taken; -errno.
  [[nodiscard]] int open() {
    int rc = -EBUSY;
    for (uint32_t qp = 0; rc != 0 && qp < device_.queue_pairs(); ++qp) {
      rc = device_.claimed(qp) ? -EBUSY : device_.eal_card().shared().claim(qp, device_.bus());
      qp_ = qp;
    }
    if (rc != 0) {
      base::log_error("%s: selftest: no queue pair is free: release one, or have more (qps=N)",
                      device_.name().c_str());
      return rc;
    }
    claimed_ = true;
    Card& card = *device_.card();
    QueuePairConfig config;
    config.tx_log2 = config.shared_log2 = config.dedicated_log2 = config.doorbell_log2 =
        config.dma_log2 = config.event_log2 =
            std::max(selftest::End::kBurstLog2, card.caps().ring_log2_min);
    if (rc = card.open_queue_pair(qp_, config, &pair_); rc != 0) {
      return rc;
    }
    end_.card = &card;
    end_.pair = pair_.get();
    end_.hook = device_.bus().poll_hook(qp_);
    end_.dest_id = card.dest_id(qp_);
    return device_.bus().dma_alloc(selftest::End::kMemoryBytes, selftest::End::kPageBytes,
                                   &end_.memory);
  }

  [[nodiscard]] const selftest::End& end() const { return end_; }
  [[nodiscard]] const RawDevice& device() const { return device_; }

 private:
  void set_fault_rate(double rate) {
    if (fault_rate_ > 0.0) {
      (void)device_.eal_card().set_faults(fault_seed_, rate);
    }
  }

  RawDevice& device_;
  const uint64_t fault_seed_;  // before the test
  const double fault_rate_;
  uint32_t qp_ = 0;
  bool claimed_ = false;
  std::unique_ptr<QueuePair> pair_;
  selftest::End end_;
};

/// Everything that goes from one end to the other. @return what is wrong, or empty.
std::string try_all(selftest::Exchange& exchange) {
  constexpr uint32_t kRounds = 8;
  constexpr uint32_t kEntryStep = regs::kSegmentBytesMax;
  const Caps& caps = exchange.from().card->caps();
  selftest::Tally tally;
  std::string wrong = try_messages(exchange, selftest::length_trials(false), &tally);
  wrong =
      wrong.empty() ? try_messages(exchange, selftest::inline_trials(caps, false), &tally) : wrong;
  wrong = wrong.empty() ? try_doorbells(exchange, true, &tally) : wrong;
  if (caps.ring_log2_min <= selftest::End::kBurstLog2) {
    wrong = wrong.empty() ? try_bursts(exchange, kRounds, &tally) : wrong;
  }
  for (uint32_t i = 0; wrong.empty() && i < regs::kDedicatedQueues; ++i) {
    wrong = try_dedicated(exchange, i, kEntryStep, &tally);
  }
  const bool has_dma = (exchange.from().pair->rings() & ring_bit(regs::Ring::kDma)) != 0;
  return wrong.empty() && has_dma && exchange.to().pair->has_windows()
             ? try_memory(exchange, true, &tally)
             : wrong;
}

/// @return 0; -EIO (wrong bytes or status), -ETIMEDOUT (nothing moved), -ENODEV (gone), logged.
int run(const TestEnd& from, const TestEnd& to) {
  selftest::Exchange exchange(from.end(), to.end(),
                              {.patience_ms = kPatienceMs, .doubts_max = kDoubtsMax});
  const std::string wrong = try_all(exchange);
  if (wrong.empty()) {
    return 0;
  }
  base::log_error("%s: selftest to %s: %s", from.device().name().c_str(),
                  to.device().name().c_str(), wrong.c_str());
  return exchange.gone() ? -ENODEV : exchange.stalled() ? -ETIMEDOUT : -EIO;
}

int test_device(RawDevice& device) {
  if (device.card() == nullptr) {
    return -ENODEV;
  }
  RawDevice* const peer = device.peer();
  if (peer == nullptr || peer->card() == nullptr) {
    base::log_error(
        "%s: selftest: nothing is at the other end of wire '%s': give another device "
        "wire=%s, or use wire=loop",
        device.name().c_str(), device.wire().c_str(), device.wire().c_str());
    return -ENOLINK;
  }
  for (RawDevice* const end : {&device, peer}) {
    if (!end->eal_card().wait_link(kLinkTimeoutMs)) {
      base::log_error("%s: selftest: the link is down", end->name().c_str());
      return -ENOLINK;
    }
  }
  TestEnd own(device);
  int rc = own.open();
  if (rc == 0 && peer != &device) {
    TestEnd other(*peer);
    rc = other.open();
    rc = rc != 0 ? rc : run(own, other);
    rc = rc != 0 ? rc : run(other, own);
  } else if (rc == 0) {
    rc = run(own, own);
  }
  base::log_info("%s: selftest %s", device.name().c_str(), rc == 0 ? "passed" : "failed");
  return rc;
}

}  // namespace

int selftest(uint16_t dev_id) {
  return with_device(dev_id, -ENODEV, test_device);
}

}  // namespace rio::pmd
