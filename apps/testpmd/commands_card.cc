// reg read, reg write, reg dump: registers by name or offset; desc dump: a ring, as it lies in
// memory.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

#include <rte_memory.h>

#include "apps/common/registers.hpp"
#include "apps/testpmd/console.hpp"
#include "apps/testpmd/text.hpp"
#include "base/number.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/reg_names.hpp"

namespace rio::testpmd {

using pmd::find_register;
using pmd::RegWord;
namespace {

void print_port(const TestPort& port) {
  std::printf("port %u, %s\n", port.index, port.name.c_str());
}

int read_word(const TestPort& port, const RegWord& word, uint32_t* value, std::string* error) {
  const int rc = port.card().reg_read(word.offset(), value);
  return rc == 0 ? 0 : fail(error, "%s", apps::access_error("read", word, rc).c_str());
}

int read_register(Console& console, Args args, std::string* error) {
  std::vector<TestPort*> ports;
  RegWord word;
  if (ports_of(console, args, &ports, error) != 0 || find_register(args[1], &word, error) != 0) {
    return -EINVAL;
  }
  for (const TestPort* port : ports) {
    uint32_t value = 0;
    if (read_word(*port, word, &value, error) != 0) {
      return -EINVAL;
    }
    if (ports.size() > 1) {
      print_port(*port);
    }
    std::printf("%s\n", apps::word_line(word, value).c_str());
  }
  return 0;
}

int write_register(Console& console, Args args, std::string* error) {
  std::vector<TestPort*> ports;
  RegWord word;
  uint64_t value = 0;
  if (ports_of(console, args, &ports, error) != 0 || find_register(args[1], &word, error) != 0) {
    return -EINVAL;
  }
  if (!base::read_bytes(args[2], 0, UINT32_MAX, &value)) {
    return fail(error, "'%s' is not a 32-bit number, such as 0x10", args[2].c_str());
  }
  for (const TestPort* port : ports) {
    const int rc = port->card().reg_write(word.offset(), static_cast<uint32_t>(value));
    if (rc != 0) {
      return fail(error, "%s", apps::access_error("write", word, rc).c_str());
    }
  }
  return 0;
}

int dump_registers(Console& console, Args args, std::string* error) {
  const std::string prefix = args.size() > 1 ? args[1] : "";
  std::vector<TestPort*> ports;
  if (ports_of(console, args, &ports, error) != 0) {
    return -EINVAL;
  }
  bool shown = false;
  for (const TestPort* port : ports) {
    print_port(*port);
    for (const RegWord& word : pmd::words_of(port->card(), prefix)) {
      uint32_t value = 0;
      if (read_word(*port, word, &value, error) != 0) {
        return -EINVAL;
      }
      std::printf("%s\n", apps::word_line(word, value).c_str());
      shown = true;
    }
  }
  return shown ? 0 : fail(error, "%s", apps::no_such_prefix(prefix).c_str());
}

/// The layout of a ring's entries, which is named after the ring; completions without one of their
/// own are entry_cpl. @return null: the ring has completions only.
const regs::names::DescName* layout_of(std::string ring, bool completions) {
  const auto find = [](const std::string& name) {
    const auto* const at = std::ranges::find_if(regs::names::kDescriptors,
                                                [&name](const auto& d) { return name == d.name; });
    return at == std::end(regs::names::kDescriptors) ? nullptr : at;
  };
  ring.erase(ring.find_last_not_of("0123456789") + 1);  // dedicated0 to 7 have one
  const auto* const own = find(ring + (completions ? "_cpl" : "_desc"));
  return own == nullptr && completions ? find("entry_cpl") : own;
}

void print_entry(const regs::names::DescName& desc, const uint8_t* bytes, uint32_t index) {
  std::printf("  [%u]", index);
  for (const regs::names::MemberName& member : desc.members) {
    uint64_t value = 0;
    std::memcpy(&value, bytes + member.offset, member.bytes);
    std::printf(" %s=0x%llx", member.name, static_cast<unsigned long long>(value));
    if (!member.fields.empty()) {
      std::printf("(%s)", pmd::fields_text(member.fields, value).c_str());
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
      return fail(error, "cannot read the ring's registers: %s", std::strerror(-rc));
    }
  }
  const auto [lo, hi, size] = words;
  *iova = uint64_t{hi} << 32 | lo;
  *entries = 1u << (completions ? r::RingSize::clog2.get(size) : r::RingSize::log2.get(size));
  return *iova != 0 ? 0
                    : fail(error, "ring %s of queue pair %u is not open", pmd::ring_name(ring), qp);
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
  return fail(error, "no ring '%s'; there are %s", text.c_str(), names.c_str());
}

int dump_descriptors(Console& console, Args args, std::string* error) {
  std::vector<TestPort*> ports;
  uint64_t qp = 0;
  uint32_t ring = 0;
  if (ports_of(console, args, &ports, error) != 0 || ring_number(args[2], &ring, error) != 0) {
    return -EINVAL;
  }
  const uint32_t last_qp = ports.front()->queue_pairs() - 1;
  if (!base::read_bytes(args[1], 0, last_qp, &qp)) {
    return fail(error, "no queue pair '%s'; there are 0 to %u", args[1].c_str(), last_qp);
  }
  const bool completions = args.size() > 3 && args[3] == "cpl";
  if (args.size() > 3 && !completions && args[3] != "desc") {
    return fail(error, "'%s' is neither desc nor cpl", args[3].c_str());
  }
  const auto* const desc = layout_of(args[2], completions);
  if (desc == nullptr) {
    return fail(error, "ring %s has completions only; add cpl", args[2].c_str());
  }
  for (const TestPort* port : ports) {
    uint64_t iova = 0;
    uint32_t entries = 0;
    if (locate(*port, static_cast<uint32_t>(qp), ring, completions, &iova, &entries, error) != 0) {
      return -EINVAL;
    }
    uint64_t first = 0;
    uint64_t count = 8;
    if ((args.size() > 4 && !base::read_bytes(args[4], 0, entries - 1, &first)) ||
        (args.size() > 5 && !base::read_bytes(args[5], 0, entries, &count))) {
      return fail(error, "the ring has entries 0 to %u", entries - 1);
    }
    const auto* bytes = static_cast<const uint8_t*>(rte_mem_iova2virt(iova));
    if (bytes == nullptr) {
      return fail(error, "the ring's memory is not of this process");
    }
    std::printf("port %u, ring %s, %u entries of %s\n", port->index, args[2].c_str(), entries,
                desc->name);
    for (uint64_t i = 0; i < count; ++i) {
      const auto index = static_cast<uint32_t>((first + i) % entries);
      print_entry(*desc, bytes + uint64_t{index} * desc->bytes, index);
    }
  }
  return 0;
}

constexpr Command kCommands[] = {
    {"reg read", "PORT|all NAME|OFFSET", "a register, with its fields", read_register},
    {"reg write", "PORT|all NAME|OFFSET VALUE", "a register that the host writes", write_register},
    {"reg dump", "PORT|all [PREFIX]", "all registers, or those that begin so", dump_registers},
    {"desc dump", "PORT|all QP RING [desc|cpl [FIRST [COUNT]]]",
     "entries of a ring, as they lie in memory", dump_descriptors},
};

}  // namespace

std::span<const Command> card_commands() {
  return kCommands;
}

}  // namespace rio::testpmd
