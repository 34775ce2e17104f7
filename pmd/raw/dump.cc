#include <algorithm>
#include <cctype>

#include "pmd/dev/names.hpp"
#include "pmd/raw/ops.hpp"

namespace rio::pmd {
namespace {

void line(std::FILE* file, Mmio& bar, const char* name, uint32_t offset) {
  std::fprintf(file, "%05x %-24s %08x\n", offset, name, bar.read32(offset));
}

void dump_block(std::FILE* file, Mmio& bar, const char* block) {
  each_word(block, [&](const regs::names::RegName& reg) {
    line(file, bar, in_capitals(reg, '.').c_str(), reg.offset);
  });
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

std::string in_capitals(const regs::names::RegName& reg, char between) {
  std::string text = std::string(reg.block) + between + reg.name;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

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
    dump_block(file, bar, "id");
    for (uint32_t i = 0; i < device.queue_pairs(); ++i) {
      line(file, bar, ("ID.QP_DEST_ID[" + std::to_string(i) + "]").c_str(),
           regs::id::qp_dest_id(i));
    }
    dump_block(file, bar, "port");
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
