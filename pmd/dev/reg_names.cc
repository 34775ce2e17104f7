#include "pmd/dev/reg_names.hpp"

#include <algorithm>
#include <cerrno>

#include "base/number.hpp"

namespace rio::pmd {
namespace {

using regs::names::RegName;

/// ASCII only: names of registers are.
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Split "name[7]". @return false for anything else than a name or this.
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

std::string form(const RegName& reg) {
  std::string text = reg.block;
  if (reg.instances > 1) {
    text.append("[0-").append(std::to_string(reg.instances - 1)).append("]");
  }
  text += std::string(".") + reg.name;
  if (reg.count > 1) {
    text.append("[0-").append(std::to_string(reg.count - 1)).append("]");
  }
  return text;
}

int by_offset(uint32_t offset, RegWord* out, std::string* error) {
  for (const RegName& reg : regs::names::kRegisters) {
    for (uint32_t instance = 0; instance < reg.instances; ++instance) {
      for (uint32_t index = 0; index < reg.count; ++index) {
        const RegWord word{&reg, instance, index};
        if (word.offset() == offset) {
          *out = word;
          return 0;
        }
      }
    }
  }
  *error = "no register at offset " + std::to_string(offset) + "; a dump lists them";
  return -EINVAL;
}

int unknown(std::string_view text, std::string_view block, std::string* error) {
  std::string near;
  for (const RegName& reg : regs::names::kRegisters) {
    if (block == reg.block) {
      near += (near.empty() ? "" : ", ") + form(reg);
    }
  }
  *error = "no register '" + std::string(text) + "'; " +
           (near.empty() ? "blocks are id, rx_map, port, qp[N], window[N]" : "there are " + near);
  return -EINVAL;
}

}  // namespace

std::string RegWord::name() const {
  std::string text = reg->block;
  if (reg->instances > 1) {
    text.append("[").append(std::to_string(instance)).append("]");
  }
  text += std::string(".") + reg->name;
  if (reg->count > 1) {
    text.append("[").append(std::to_string(index)).append("]");
  }
  return text;
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
      *error = "register '" + std::string(text) + "' is written " + form(reg);
      return -EINVAL;
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

}  // namespace rio::pmd
