#include "base/log.hpp"
#include "pmd/raw/ops.hpp"
#include "pmd/raw/selftest_run.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kLinkTimeoutMs = 1000;

/// Takes a queue pair that nobody has. @return -EBUSY: all are taken.
int open_end(RawDevice& device, SelftestEnd* end) {
  int rc = -EBUSY;
  uint32_t qp = 0;
  for (; qp < device.queue_pairs(); ++qp) {
    rc = device.claimed(qp) ? -EBUSY : device.eal_card().shared().claim(qp, device.bus());
    if (rc == 0) {
      break;
    }
  }
  if (rc != 0) {
    base::log_error("%s: selftest: no queue pair is free: release one, or have more (qps=N)",
                    device.name().c_str());
    return rc;
  }
  end->device = &device;
  end->qp = qp;
  end->dest_id = device.card()->dest_id(qp);
  QueuePairConfig config;
  config.tx_log2 = config.shared_log2 = config.dedicated_log2 = config.doorbell_log2 =
      config.dma_log2 = config.event_log2 = std::max(6u, device.card()->caps().ring_log2_min);
  if (rc = device.card()->open_queue_pair(qp, config, &end->pair); rc != 0) {
    return rc;
  }
  rc = device.bus().dma_alloc(size_t{SelftestPages::kAll} * regs::kMessageBytesMax,
                              regs::kMessageBytesMax, &end->memory);
  return rc != 0 ? rc : SelftestRun::post_buffers(*end);
}

void close_end(SelftestEnd& end) {
  if (end.device == nullptr) {
    return;
  }
  end.pair.reset();  // stops the rings: now the memory is ours
  if (end.memory.va != nullptr) {
    end.device->bus().dma_free(end.memory);
  }
  end.device->eal_card().shared().release(end.qp);
}

int run(SelftestEnd& from, SelftestEnd& to) {
  SelftestRun test(from, to);
  int rc = test.sizes();
  rc = rc != 0 ? rc : test.inline_sizes();
  rc = rc != 0 ? rc : test.doorbells();
  rc = rc != 0 ? rc : test.dedicated();
  return rc != 0 ? rc : test.remote_memory();
}

/// Faults are off while this lives.
class NoFaults {
 public:
  explicit NoFaults(RawDevice& device)
      : device_(device),
        seed_(device.eal_card().args().emu.model.fault_seed),
        rate_(device.eal_card().args().emu.model.fault_rate) {
    if (rate_ > 0.0) {
      (void)device_.eal_card().set_faults(seed_, 0.0);
    }
  }
  ~NoFaults() {
    if (rate_ > 0.0) {
      (void)device_.eal_card().set_faults(seed_, rate_);
    }
  }
  NoFaults(const NoFaults&) = delete;
  NoFaults& operator=(const NoFaults&) = delete;

 private:
  RawDevice& device_;
  uint64_t seed_;
  double rate_;
};

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
  const NoFaults here(device);
  const NoFaults there(*peer);
  SelftestEnd ends[2];
  int rc = open_end(device, &ends[0]);
  if (rc == 0 && peer != &device) {
    rc = open_end(*peer, &ends[1]);
    rc = rc != 0 ? rc : run(ends[0], ends[1]);
    rc = rc != 0 ? rc : run(ends[1], ends[0]);
  } else if (rc == 0) {
    rc = run(ends[0], ends[0]);
  }
  close_end(ends[0]);
  close_end(ends[1]);
  base::log_info("%s: selftest %s", device.name().c_str(), rc == 0 ? "passed" : "failed");
  return rc;
}

}  // namespace

int selftest(uint16_t dev_id) {
  const std::lock_guard guard(control_lock());
  RawDevice* const device = find_device(dev_id);
  return device == nullptr ? -ENODEV : test_device(*device);
}

}  // namespace rio::pmd
