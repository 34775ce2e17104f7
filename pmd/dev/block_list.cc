#include "pmd/dev/block_list.hpp"

#include <cerrno>

#include "base/log.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::pmd {
namespace {

using Header = regs::id::Block;

// More than the layout can hold, so a longer chain is a loop.
constexpr uint32_t kBlocksMax = 3 + 8 * regs::kMaxQps;
constexpr uint32_t kHeaderBytes = 8;

[[nodiscard]] bool within(uint32_t offset_bytes, uint32_t base, uint32_t size_bytes) {
  return offset_bytes - base < size_bytes;
}

}  // namespace

int BlockList::discover(Mmio& bar, const std::string& card_name) {
  const char* const card = card_name.c_str();
  *this = {};
  const uint32_t magic = bar.read32(regs::id::magic());
  if (magic == regs::kAllOnes) {
    base::log_error(
        "%s: BAR0 reads all ones: the card is gone or its memory is not enabled; check slot "
        "and link, then rescan the bus",
        card);
    return -ENODEV;
  }
  if (magic != regs::kMagic) {
    base::log_error(
        "%s: magic is 0x%08x, not 0x%08x: not a RapidIO message card; check the PCI address", card,
        magic, regs::kMagic);
    return -EPROTO;
  }
  const uint32_t first = bar.read32(regs::id::block());
  if (Header::type.get(first) != static_cast<uint32_t>(regs::BlockType::kId) ||
      Header::version.get(first) == 0) {
    base::log_error("%s: first block is of type %u, version %u; update the gateware", card,
                    Header::type.get(first), Header::version.get(first));
    return -EPROTO;
  }
  uint32_t offset = bar.read32(regs::id::next());
  for (uint32_t count = 0; offset != 0; ++count) {
    if (offset % 4 != 0 || offset > bar.len_bytes() || bar.len_bytes() - offset < kHeaderBytes) {
      if (offset == regs::kAllOnes && card_gone(bar)) {
        base::log_error("%s: card is gone; check slot and link, then rescan the bus", card);
        return -ENODEV;
      }
      base::log_error("%s: block %u lies at 0x%x, BAR0 has 0x%zx bytes; update the gateware", card,
                      count + 1, offset, bar.len_bytes());
      return -EPROTO;
    }
    if (count == kBlocksMax) {
      base::log_error("%s: the chain of blocks loops through 0x%x; update the gateware", card,
                      offset);
      return -EPROTO;
    }
    const uint32_t header = bar.read32(offset);
    if (!note(offset, header)) {
      base::log_error(
          "%s: block of type %u, version %u, instance %u at 0x%x breaks the contract; update "
          "the gateware or the driver",
          card, Header::type.get(header), Header::version.get(header), Header::instance.get(header),
          offset);
      return -EPROTO;
    }
    offset = bar.read32(offset + 4);
  }
  return 0;
}

bool BlockList::note(uint32_t offset_bytes, uint32_t header) {
  const uint32_t qp = Header::instance.get(header);
  bool right = true;
  switch (static_cast<regs::BlockType>(Header::type.get(header))) {
    case regs::BlockType::kRxMap:
      right = offset_bytes == regs::rx_map::kBase;
      has_rx_map_ = right;
      break;
    case regs::BlockType::kPort:
      right = offset_bytes == regs::port::kBase;
      has_port_ = right;
      break;
    case regs::BlockType::kQp:
      right = qp < regs::kMaxQps && offset_bytes == regs::qp::base(qp);
      if (right) {
        has_qp_[qp] = true;
      }
      break;
    case regs::BlockType::kWindow:
      right = qp < regs::kMaxQps && offset_bytes == regs::window::base(qp);
      if (right) {
        has_window_[qp] = true;
      }
      break;
    default:
      return true;  // an unknown type: skipped
  }
  return right && Header::version.get(header) != 0;
}

BlockList::Owner BlockList::owner_of(uint32_t offset_bytes) const {
  uint32_t base = regs::id::kBase;
  bool known = within(offset_bytes, base, regs::id::kSizeBytes);
  if (!known && has_rx_map_) {
    base = regs::rx_map::kBase;
    known = within(offset_bytes, base, regs::rx_map::kSizeBytes);
  }
  if (!known && has_port_) {
    base = regs::port::kBase;
    known = within(offset_bytes, base, regs::port::kSizeBytes);
  }
  for (uint32_t qp = 0; !known && qp < regs::kMaxQps; ++qp) {
    if (has_qp_[qp] && within(offset_bytes, regs::qp::base(qp), regs::qp::kSizeBytes)) {
      base = regs::qp::base(qp);
      known = true;
    } else if (has_window_[qp] &&
               within(offset_bytes, regs::window::base(qp), regs::window::kSizeBytes)) {
      base = regs::window::base(qp);
      known = true;
    }
  }
  if (!known) {
    return Owner::kNone;
  }
  // The card writes the first page of a block, the host all others.
  return offset_bytes - base < regs::kPageBytes ? Owner::kCard : Owner::kHost;
}

}  // namespace rio::pmd
