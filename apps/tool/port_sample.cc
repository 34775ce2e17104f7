#include "apps/tool/port_sample.hpp"

#include <cerrno>

#include "apps/tool/global_options.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/ring.hpp"

namespace rio::tool {
namespace {

/// TAIL of each ring that runs: what its program has posted. Of rings without entries it is what
/// the program has taken, plus the ring.
void add_rings(pmd::Card& card, std::vector<Count>* counts) {
  pmd::Mmio bar = card.bus().bar();
  for (uint32_t qp = 0; qp < card.caps().queue_pairs; ++qp) {
    for (uint32_t ring = 0; card.blocks().has_qp(qp) && ring < regs::kRingsPerQp; ++ring) {
      if (pmd::Ring::busy(bar, qp, ring) == 1) {
        counts->push_back({"qp" + std::to_string(qp) + "." + pmd::ring_name(ring) + ".posted",
                           bar.read32(regs::qp::tail(qp, ring))});
      }
    }
  }
}

}  // namespace

int take_sample(pmd::Card& card, PortSample* out) {
  PortSample sample;
  sample.at = std::chrono::steady_clock::now();
  const pmd::PortCounters port = card.counters();
  sample.counts = {{"tx_packets", port.tx_packets},   {"rx_packets", port.rx_packets},
                   {"tx_retries", port.tx_retries},   {"rx_retries", port.rx_retries},
                   {"rx_errors", port.rx_errors},     {"tx_timeouts", port.tx_timeouts},
                   {"rx_timeouts", port.rx_timeouts}, {"rx_unmapped", port.rx_unmapped}};
  add_rings(card, &sample.counts);
  if (card.gone()) {  // last: what was read before it may be all ones
    (void)complain(card.bus().name() + ": the card is gone (its magic reads all ones)",
                   "check slot, link and power, then rescan the bus");
    return -ENODEV;
  }
  *out = std::move(sample);
  return 0;
}

double per_second(const PortSample& before, const PortSample& now, const Count& count) {
  const std::chrono::duration<double> took = now.at - before.at;
  for (const Count& old : before.counts) {
    if (old.name == count.name && took.count() > 0) {
      return static_cast<uint32_t>(count.value - old.value) / took.count();  // over a wrap, too
    }
  }
  return 0;
}

}  // namespace rio::tool
