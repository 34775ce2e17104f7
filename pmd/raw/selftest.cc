#include <algorithm>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "pmd/raw/ops.hpp"
#include "pmd/selftest/parts.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kLinkTimeoutMs = 1000;

/// A queue pair of a card, taken for a test, with its rings open. Faults are off while this lives.
/// Gives all back.
class TestEnd {
 public:
  explicit TestEnd(EalCard& card)
      : card_(card),
        fault_seed_(card.args().emu.model.fault_seed),
        fault_rate_(card.args().emu.model.fault_rate) {
    set_fault_rate(0.0);
  }
  ~TestEnd() {
    pair_.reset();  // stops the rings: now the memory is ours
    if (end_.memory.va != nullptr) {
      card_.bus().dma_free(end_.memory);
    }
    if (claimed_) {
      card_.shared().release(qp_);
    }
    set_fault_rate(fault_rate_);
  }
  TestEnd(const TestEnd&) = delete;
  TestEnd& operator=(const TestEnd&) = delete;

  /// Take a queue pair that is free. @return 0; -EBUSY: all are taken; -errno.
  [[nodiscard]] int open() {
    int rc = -EBUSY;
    for (uint32_t qp = 0; rc != 0 && qp < card_.queue_pairs(); ++qp) {
      rc = card_.shared().claim(qp, card_.bus());
      qp_ = qp;
    }
    if (rc != 0) {
      base::log_error("%s: selftest: no queue pair is free: release one, or have more (qps=N)",
                      card_.name().c_str());
      return rc;
    }
    claimed_ = true;
    Card& card = *card_.card();
    QueuePairConfig config;
    config.tx_log2 = config.shared_log2 = config.dedicated_log2 = config.doorbell_log2 =
        config.dma_log2 = config.event_log2 =
            std::max(selftest::End::kBurstLog2, card.caps().ring_log2_min);
    if (rc = card.open_queue_pair(qp_, config, &pair_); rc != 0) {
      return rc;
    }
    end_.card = &card;
    end_.pair = pair_.get();
    end_.hook = card_.bus().poll_hook(qp_);
    end_.dest_id = card.dest_id(qp_);
    return card_.bus().dma_alloc(selftest::End::kMemoryBytes, selftest::End::kPageBytes,
                                 &end_.memory);
  }

  [[nodiscard]] const selftest::End& end() const { return end_; }
  [[nodiscard]] const std::string& name() const { return card_.name(); }

 private:
  void set_fault_rate(double rate) {
    if (fault_rate_ > 0.0) {
      (void)card_.set_faults(fault_seed_, rate);
    }
  }

  EalCard& card_;
  const uint64_t fault_seed_;  // before the test
  const double fault_rate_;
  uint32_t qp_ = 0;
  bool claimed_ = false;
  std::unique_ptr<QueuePair> pair_;
  selftest::End end_;
};

/// As selftest::try_all(), logged.
int run(const TestEnd& from, const TestEnd& to) {
  std::string wrong;
  const int rc = selftest::try_all(from.end(), to.end(), &wrong);
  if (rc != 0) {
    base::log_error("%s: selftest to %s: %s", from.name().c_str(), to.name().c_str(),
                    wrong.c_str());
  }
  return rc;
}

int test_card(EalCard& card) {
  if (card.card() == nullptr) {
    return -ENODEV;
  }
  const bool is_looped = card.wire().empty() || card.wire() == "loop";
  const std::shared_ptr<EalCard> peer = is_looped ? nullptr : card.other_end();
  if (!is_looped && (peer == nullptr || peer->card() == nullptr)) {
    base::log_error(
        "%s: selftest: nothing is at the other end of wire '%s': give another device "
        "wire=%s, or use wire=loop",
        card.name().c_str(), card.wire().c_str(), card.wire().c_str());
    return -ENOLINK;
  }
  for (EalCard* const end : {&card, peer.get()}) {
    if (end != nullptr && !end->wait_link(kLinkTimeoutMs)) {
      base::log_error("%s: selftest: the link is down", end->name().c_str());
      return -ENOLINK;
    }
  }
  TestEnd own(card);
  int rc = own.open();
  if (rc == 0 && peer != nullptr) {
    TestEnd other(*peer);
    rc = other.open();
    rc = rc != 0 ? rc : run(own, other);
    rc = rc != 0 ? rc : run(other, own);
  } else if (rc == 0) {
    rc = run(own, own);
  }
  base::log_info("%s: selftest %s", card.name().c_str(), rc == 0 ? "passed" : "failed");
  return rc;
}

}  // namespace

int selftest(uint16_t dev_id) {
  return with_device(dev_id, -ENODEV,
                     [](RawDevice& device) { return test_card(device.eal_card()); });
}

}  // namespace rio::pmd
