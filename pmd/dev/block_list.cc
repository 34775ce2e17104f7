#include "pmd/dev/block_list.hpp"

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::pmd {
namespace {

using Header = regs::id::Block;

// More than the layout can hold, so a longer chain is a loop.
constexpr uint32_t kBlocksMax = 4 + 8 * regs::kMaxQps;
constexpr uint32_t kHeaderBytes = 8;

/// Whether a known block is of an edition of the contract that the driver keeps. Logs if not. A
/// later edition only adds.
bool check_edition(const char* card, uint32_t header, uint32_t offset_bytes) {
  const uint32_t version = Header::version.get(header);
  if (version < regs::kEdition) {
    base::log_error(
        "%s: the card keeps edition %u of the contract (block of type %u at 0x%x), this driver "
        "needs edition %u: update the gateware",
        card, version, Header::type.get(header), offset_bytes, regs::kEdition);
  }
  return version >= regs::kEdition;
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
  if (Header::type.get(first) != static_cast<uint32_t>(regs::BlockType::kId)) {
    base::log_error("%s: first block is of type %u; update the gateware", card,
                    Header::type.get(first));
    return -EPROTO;
  }
  if (!check_edition(card, first, regs::id::kBase)) {
    return -EPROTO;
  }
  blocks_.push_back({regs::BlockType::kId, 0, regs::id::kBase, regs::id::kSizeBytes});
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
    const size_t known = blocks_.size();
    const bool in_place = note(offset, header);
    if (blocks_.size() > known && !check_edition(card, header, offset)) {
      return -EPROTO;
    }
    if (!in_place) {
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
  Block block{static_cast<regs::BlockType>(Header::type.get(header)), Header::instance.get(header),
              0, 0};
  switch (block.type) {
    case regs::BlockType::kRxMap:
      block = {block.type, 0, regs::rx_map::kBase, regs::rx_map::kSizeBytes};
      break;
    case regs::BlockType::kPort:
      block = {block.type, 0, regs::port::kBase, regs::port::kSizeBytes};
      break;
    case regs::BlockType::kRail:
      block = {block.type, 0, regs::rail::kBase, regs::rail::kSizeBytes};
      break;
    case regs::BlockType::kVf:
      block = {block.type, 0, regs::vf::kBase, regs::vf::kSizeBytes};
      break;
    case regs::BlockType::kQp:
      block.base = regs::qp::base(block.instance);
      block.size_bytes = regs::qp::kSizeBytes;
      break;
    case regs::BlockType::kWindow:
      block.base = regs::window::base(block.instance);
      block.size_bytes = regs::window::kSizeBytes;
      break;
    case regs::BlockType::kBarrier:
      block.base = regs::barrier::base(block.instance);
      block.size_bytes = regs::barrier::kSizeBytes;
      break;
    default:
      return true;  // an unknown type: skipped
  }
  blocks_.push_back(block);
  return block.instance < regs::kMaxQps && offset_bytes == block.base;
}

bool BlockList::has(regs::BlockType type, uint32_t instance) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [=](const Block& block) {
    return block.type == type && block.instance == instance;
  });
}

BlockList::Owner BlockList::owner_of(uint32_t offset_bytes) const {
  const auto it = std::find_if(blocks_.begin(), blocks_.end(), [=](const Block& block) {
    return offset_bytes - block.base < block.size_bytes;
  });
  if (it == blocks_.end()) {
    return Owner::kNone;
  }
  // The card writes the first page of a block, the host all others.
  return offset_bytes - it->base < regs::kPageBytes ? Owner::kCard : Owner::kHost;
}

}  // namespace rio::pmd
