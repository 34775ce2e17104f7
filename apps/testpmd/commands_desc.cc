// desc dump: descriptors and completions of a ring, as they lie in memory.
#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <rte_memory.h>

#include "apps/testpmd/console.hpp"
#include "base/number.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/reg_names.hpp"

namespace rio::testpmd {

using pmd::fields_text;
namespace {

using regs::Ring;

struct Layout {
  const char* submission;  // null: the ring has completions only
  const char* completion;
};

/// By regs::Ring; the dedicated rings share the last one.
constexpr std::array<Layout, 8> kLayouts = {{{"tx_desc", "tx_cpl"},
                                             {"shared_desc", "shared_cpl"},
                                             {nullptr, "doorbell_cpl"},
                                             {"dma_desc", "entry_cpl"},
                                             {"maint_desc", "entry_cpl"},
                                             {"dedicated_desc", "entry_cpl"},
                                             {nullptr, "event_cpl"},
                                             {"dedicated_desc", "entry_cpl"}}};
static_assert(static_cast<uint32_t>(Ring::kDma) == 3 && static_cast<uint32_t>(Ring::kMaint) == 4 &&
              static_cast<uint32_t>(Ring::kEvent) == 6);

void print_entry(const regs::names::DescName& desc, const uint8_t* bytes, uint32_t index) {
  std::printf("  [%u]", index);
  for (const regs::names::MemberName& member : desc.members) {
    uint64_t value = 0;
    std::memcpy(&value, bytes + member.offset, member.bytes);
    std::printf(" %s=0x%llx", member.name, static_cast<unsigned long long>(value));
    if (!member.fields.empty()) {
      std::printf("(%s)", fields_text(member.fields, value).c_str());
    }
  }
  std::printf("\n");
}

/// Where a ring is, by what the host wrote into the card.
int locate(const TestPort& port, uint32_t qp, uint32_t ring, bool completions, uint64_t* iova,
           uint32_t* entries, std::string* error) {
  namespace r = regs::qp;
  const uint32_t offsets[] = {completions ? r::ring_cbase_lo(qp, ring) : r::ring_base_lo(qp, ring),
                              completions ? r::ring_cbase_hi(qp, ring) : r::ring_base_hi(qp, ring),
                              r::ring_size(qp, ring)};
  uint32_t words[3] = {};
  for (size_t i = 0; i < std::size(offsets); ++i) {
    if (const int rc = port.card().reg_read(offsets[i], &words[i]); rc != 0) {
      *error = std::string("cannot read the ring's registers: ") + std::strerror(-rc);
      return rc;
    }
  }
  const auto [lo, hi, size] = words;
  *iova = uint64_t{hi} << 32 | lo;
  *entries = 1u << (completions ? r::RingSize::clog2.get(size) : r::RingSize::log2.get(size));
  if (*iova == 0) {
    *error = std::string("ring ") + pmd::ring_name(ring) + " of queue pair " + std::to_string(qp) +
             " is not open";
    return -ENOENT;
  }
  return 0;
}

int ring_number(const std::string& text, uint32_t* out, std::string* error) {
  std::string names;
  for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
    if (text == pmd::ring_name(ring)) {
      *out = ring;
      return 0;
    }
    names += (names.empty() ? "" : ", ") + std::string(pmd::ring_name(ring));
  }
  *error = "no ring '" + text + "'; there are " + names;
  return -EINVAL;
}

int dump(Console& console, Args args, std::string* error) {
  std::vector<TestPort*> ports;
  uint64_t qp = 0;
  uint32_t ring = 0;
  if (ports_of(console, args[0], &ports, error) != 0 || ring_number(args[2], &ring, error) != 0) {
    return -EINVAL;
  }
  if (!base::read_bytes(args[1], 0, UINT32_MAX, &qp) || qp >= ports.front()->queue_pairs()) {
    *error = "no queue pair '" + args[1] + "'; there are 0 to " +
             std::to_string(ports.front()->queue_pairs() - 1);
    return -EINVAL;
  }
  const bool completions = args.size() > 3 && args[3] == "cpl";
  if (args.size() > 3 && !completions && args[3] != "desc") {
    *error = "'" + args[3] + "' is neither desc nor cpl";
    return -EINVAL;
  }
  const Layout& layout = kLayouts[std::min<size_t>(ring, kLayouts.size() - 1)];
  const char* const name = completions ? layout.completion : layout.submission;
  if (name == nullptr) {
    *error = "ring " + args[2] + " has completions only; add cpl";
    return -EINVAL;
  }
  const auto* const desc =
      std::find_if(std::begin(regs::names::kDescriptors), std::end(regs::names::kDescriptors),
                   [name](const auto& d) { return std::string_view(d.name) == name; });
  assert(desc != std::end(regs::names::kDescriptors));
  for (const TestPort* port : ports) {
    uint64_t iova = 0;
    uint32_t entries = 0;
    const int rc =
        locate(*port, static_cast<uint32_t>(qp), ring, completions, &iova, &entries, error);
    if (rc != 0) {
      return rc;
    }
    uint64_t first = 0;
    uint64_t count = 8;
    if ((args.size() > 4 && !base::read_bytes(args[4], 0, entries - 1, &first)) ||
        (args.size() > 5 && !base::read_bytes(args[5], 0, entries, &count))) {
      *error = "the ring has entries 0 to " + std::to_string(entries - 1);
      return -EINVAL;
    }
    const auto* bytes = static_cast<const uint8_t*>(rte_mem_iova2virt(iova));
    if (bytes == nullptr) {
      *error = "the ring's memory is not of this process";
      return -EFAULT;
    }
    std::printf("port %u, ring %s, %u entries of %s\n", port->index(), args[2].c_str(), entries,
                name);
    for (uint64_t i = 0; i < count; ++i) {
      const auto index = static_cast<uint32_t>((first + i) % entries);
      print_entry(*desc, bytes + uint64_t{index} * desc->bytes, index);
    }
  }
  return 0;
}

std::vector<std::string> words(Console& console, size_t index) {
  std::vector<std::string> list;
  switch (index) {
    case 0:
      return port_names(console);
    case 1:
      for (uint32_t qp = 0; qp < console.session.ports().front()->queue_pairs(); ++qp) {
        list.push_back(std::to_string(qp));
      }
      break;
    case 2:
      for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
        list.emplace_back(pmd::ring_name(ring));
      }
      break;
    case 3:
      return {"desc", "cpl"};
    default:
      break;
  }
  return list;
}

constexpr std::array kCommands = {
    Command{"desc dump", "PORT|all QP RING [desc|cpl [FIRST [COUNT]]]",
            "entries of a ring, as they lie in memory", 3, 6, dump, words},
};

}  // namespace

std::span<const Command> desc_commands() {
  return kCommands;
}

}  // namespace rio::testpmd
