#include "pmd/dev/reg_names.hpp"

#include <algorithm>
#include <cerrno>

#include "base/formatted.hpp"
#include "base/number.hpp"

#include "pmd/dev/card.hpp"

namespace rio::pmd {
namespace {

using regs::names::RegName;

/// Lower case of an ASCII character: names of registers are ASCII.
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Splits "name[7]". @return false: neither a name nor of this form.
bool split_index(std::string_view text, std::string_view* name, bool* indexed, uint32_t* index) {
  const size_t bracket = text.find('[');
  *name = text.substr(0, bracket);
  *indexed = bracket != std::string_view::npos;
  *index = 0;
  if (!*indexed) {
    return true;
  }
  return text.ends_with(']') &&
         base::read_number(text.substr(bracket + 1, text.size() - bracket - 2), 0, 65535, index);
}

/// "qp[0].tail[3]". @param instance, index what stands in the brackets, where the name has them.
std::string with_numbers(const RegName& reg, const std::string& instance,
                         const std::string& index) {
  const auto bracketed = [](uint32_t count, const std::string& number) {
    return count > 1 ? "[" + number + "]" : "";
  };
  return reg.block + bracketed(reg.instances, instance) + "." + reg.name +
         bracketed(reg.count, index);
}

std::string form(const RegName& reg) {
  return with_numbers(reg, "0-" + std::to_string(reg.instances - 1),
                      "0-" + std::to_string(reg.count - 1));
}

/// Call a function with each word of the map, in its order. @param instances at most so many.
template <class Each>
void for_each_word(uint32_t instances, const Each& each) {
  for (const RegName& reg : regs::names::kRegisters) {
    for (uint32_t n = 0; n < std::min(reg.instances, instances) * reg.count; ++n) {
      each(RegWord{&reg, n / reg.count, n % reg.count});
    }
  }
}

int by_offset(uint32_t offset, RegWord* out, std::string* error) {
  bool found = false;
  for_each_word(regs::kMaxQps, [&](const RegWord& word) {
    if (!found && word.offset() == offset) {
      *out = word;
      found = true;
    }
  });
  return found ? 0 : base::fail(error, "no register at offset %u; a dump lists them", offset);
}

int unknown(std::string_view text, std::string_view block, std::string* error) {
  std::string near;
  for (const RegName& reg : regs::names::kRegisters) {
    if (block == reg.block) {
      near += (near.empty() ? "" : ", ") + form(reg);
    }
  }
  *error = "no register '" + std::string(text) + "'; " +
           (near.empty() ? "blocks are id, rx_map, port, rail, qp[N], window[N], barrier[N]"
                         : "similar: " + near);
  return -EINVAL;
}

}  // namespace

std::string RegWord::name() const {
  return with_numbers(*reg, std::to_string(instance), std::to_string(index));
}

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

int find_register(std::string_view text, RegWord* out, std::string* error) {
  uint32_t offset = 0;
  if (base::read_number(text, &offset)) {
    return by_offset(offset, out, error);
  }
  const size_t dot = text.find('.');
  std::string lowered(text);  // as the table has them
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), lower);
  const std::string_view wanted(lowered);
  std::string_view block;
  std::string_view name;
  bool has_instance = false;
  bool has_index = false;
  RegWord word;
  if (dot == std::string_view::npos ||
      !split_index(wanted.substr(0, dot), &block, &has_instance, &word.instance) ||
      !split_index(wanted.substr(dot + 1), &name, &has_index, &word.index)) {
    return unknown(text, wanted.substr(0, dot), error);
  }
  for (const RegName& reg : regs::names::kRegisters) {
    if (block != reg.block || name != reg.name) {
      continue;
    }
    if (has_instance != (reg.instances > 1) || has_index != (reg.count > 1) ||
        word.instance >= reg.instances || word.index >= reg.count) {
      return base::fail(error, "register '%s' is written %s", std::string(text).c_str(),
                        form(reg).c_str());
    }
    word.reg = &reg;
    *out = word;
    return 0;
  }
  return unknown(text, block, error);
}

std::string fields_text(std::span<const regs::names::FieldName> fields, uint64_t word) {
  std::string text;
  for (const regs::names::FieldName& field : fields) {
    const uint64_t mask = (uint64_t{1} << field.width) - 1;
    text.append(text.empty() ? "" : " ").append(field.name).append("=");
    text.append(std::to_string(word >> field.lsb & mask));
  }
  return text;
}

std::vector<RegWord> words_of(const Card& card, std::string_view prefix) {
  std::vector<RegWord> words;
  for_each_word(card.caps().queue_pairs, [&](const RegWord& word) {
    if (card.blocks().owner_of(word.offset()) != BlockList::Owner::kNone &&
        begins_with(word.name(), prefix)) {
      words.push_back(word);
    }
  });
  return words;
}

}  // namespace rio::pmd
