#include <cinttypes>

#include "pmd/dev/names.hpp"
#include "pmd/raw/ops.hpp"

namespace rio::pmd {
namespace {

void line(std::FILE* file, Mmio& bar, const char* name, uint32_t offset) {
  std::fprintf(file, "%05x %-24s %08x\n", offset, name, bar.read32(offset));
}

void dump_id(std::FILE* file, Mmio& bar, uint32_t queue_pairs) {
  using namespace regs::id;
  const std::pair<const char*, uint32_t> words[] = {
      {"ID.MAGIC", magic()},
      {"ID.HEARTBEAT", heartbeat()},
      {"ID.HW_VERSION", hw_version()},
      {"ID.BUILD", build()},
      {"ID.CAP_QUEUES", cap_queues()},
      {"ID.CAP_MESSAGES", cap_messages()},
      {"ID.CAP_ALIGN", cap_align()},
      {"ID.CAP_FLAGS", cap_flags()},
      {"ID.CAP_TIMERS", cap_timers()},
      {"ID.CAP_DMA_BYTES", cap_dma_bytes()},
      {"ID.GEN_ACK", gen_ack()},
      {"ID.GEN_REQ", gen_req()},
      {"ID.DEST_ID_SIZE", dest_id_size()},
      {"ID.RESPONSE_TIMEOUT_US", response_timeout_us()},
      {"ID.RECEIVE_TIMEOUT_US", receive_timeout_us()},
      {"ID.RETRY_LIMIT", retry_limit()},
      {"ID.RETRY_DELAY_US", retry_delay_us()},
  };
  for (const auto& [name, offset] : words) {
    line(file, bar, name, offset);
  }
  for (uint32_t i = 0; i < queue_pairs; ++i) {
    char name[32];
    std::snprintf(name, sizeof(name), "ID.QP_DEST_ID[%u]", i);
    line(file, bar, name, qp_dest_id(i));
  }
}

void dump_port(std::FILE* file, Mmio& bar) {
  using namespace regs::port;
  const std::pair<const char*, uint32_t> words[] = {
      {"PORT.LINK", link()},
      {"PORT.TX_PACKETS", tx_packets()},
      {"PORT.RX_PACKETS", rx_packets()},
      {"PORT.TX_RETRIES", tx_retries()},
      {"PORT.RX_RETRIES", rx_retries()},
      {"PORT.RX_ERRORS", rx_errors()},
      {"PORT.TX_TIMEOUTS", tx_timeouts()},
      {"PORT.RX_TIMEOUTS", rx_timeouts()},
      {"PORT.RX_UNMAPPED", rx_unmapped()},
      {"PORT.CONTROL", control()},
  };
  for (const auto& [name, offset] : words) {
    line(file, bar, name, offset);
  }
}

void dump_rx_map(std::FILE* file, Mmio& bar) {
  using namespace regs::rx_map;
  line(file, bar, "RX_MAP.APPLIED", applied());
  line(file, bar, "RX_MAP.APPLY", apply());
  for (uint32_t i = 0; i < regs::kRxMapEntries; ++i) {
    const uint32_t word = bar.read32(entry(i));
    if (Entry::valid.get(word) != 0) {
      std::fprintf(file, "%05x RX_MAP[%u]: destID %04x, mailboxes %08x%08x%s%s, queue pair %u\n",
                   entry(i), i, bar.read32(dest_id(i)), bar.read32(mbox_hi(i)),
                   bar.read32(mbox_lo(i)), Entry::doorbells.get(word) != 0 ? ", doorbells" : "",
                   Entry::requests.get(word) != 0 ? ", requests" : "", Entry::qp.get(word));
    }
  }
}

/// Prints a line for each ring, except for rings that were never used.
void dump_rings(std::FILE* file, Mmio& bar, uint32_t qp) {
  using namespace regs::qp;
  const uint32_t present = bar.read32(rings(qp));
  for (uint32_t i = 0; i < regs::kRingsPerQp; ++i) {
    const uint32_t control = bar.read32(ring_control(qp, i));
    const uint32_t status = bar.read32(ring_status(qp, i));
    const auto state = static_cast<regs::RingState>(RingStatus::state.get(status));
    if (((present >> i) & 1) == 0 || (control == 0 && state == regs::RingState::kStopped)) {
      continue;
    }
    const uint32_t size = bar.read32(ring_size(qp, i));
    std::fprintf(file,
                 "%05x QP[%u].%-10s %s gen %u base %08x%08x cpl %08x%08x log2 %u/%u tail %08x",
                 ring_base_lo(qp, i), qp, ring_name(i), name(state), RingControl::gen.get(control),
                 bar.read32(ring_base_hi(qp, i)), bar.read32(ring_base_lo(qp, i)),
                 bar.read32(ring_cbase_hi(qp, i)), bar.read32(ring_cbase_lo(qp, i)),
                 RingSize::log2.get(size), RingSize::clog2.get(size), bar.read32(tail(qp, i)));
    if (state == regs::RingState::kError) {
      const auto error = static_cast<regs::RingError>(RingStatus::error.get(status));
      std::fprintf(file, " error %s, entry %08x", name(error), bar.read32(ring_entry(qp, i)));
    }
    std::fprintf(file, "\n");
  }
}

void dump_windows(std::FILE* file, Mmio& bar, uint32_t qp) {
  using namespace regs::window;
  for (uint32_t i = 0; i < regs::kWindowsPerQp; ++i) {
    const uint32_t word = bar.read32(control(qp, i));
    if (Control::enable.get(word) != 0) {
      std::fprintf(
          file, "%05x WINDOW[%u][%u]: RapidIO %08x%08x, %08x%08x bytes, bus %08x%08x%s%s%s\n",
          rio_lo(qp, i), qp, i, bar.read32(rio_hi(qp, i)), bar.read32(rio_lo(qp, i)),
          bar.read32(size_hi(qp, i)), bar.read32(size_lo(qp, i)), bar.read32(bus_hi(qp, i)),
          bar.read32(bus_lo(qp, i)), Control::read.get(word) != 0 ? " read" : "",
          Control::write.get(word) != 0 ? " write" : "",
          Control::atomic.get(word) != 0 ? " atomic" : "");
    }
  }
}

}  // namespace

int dump(rte_rawdev* dev, std::FILE* file) {
  return with_device(dev, [&](RawDevice& device) {
    Mmio bar = device.bus().bar();
    std::fprintf(file, "%s on %s, %s process, %u queue pairs\n", device.name().c_str(),
                 device.bus().name().c_str(),
                 device.eal_card().is_primary() ? "primary" : "secondary", device.queue_pairs());
    if (bar.read32(regs::id::magic()) == regs::kAllOnes) {
      std::fprintf(file, "the card is gone: it reads all ones\n");
      return 0;
    }
    dump_id(file, bar, device.queue_pairs());
    dump_port(file, bar);
    dump_rx_map(file, bar);
    for (uint32_t qp = 0; qp < device.queue_pairs(); ++qp) {
      const OwnerToken owner = device.eal_card().shared().owner(qp);
      if (owner != 0) {
        std::fprintf(file, "queue pair %u of process %u%s\n", qp, token_pid(owner),
                     token_alive(owner) ? "" : " (dead)");
      }
      dump_rings(file, bar, qp);
      dump_windows(file, bar, qp);
    }
    return 0;
  });
}

}  // namespace rio::pmd
