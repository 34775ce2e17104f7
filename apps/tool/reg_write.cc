#include "apps/tool/reg_write.hpp"

#include <cerrno>

#include "apps/common/registers.hpp"
#include "apps/tool/global_options.hpp"
#include "base/number.hpp"

namespace rio::tool {
namespace {

using regs::names::FieldName;

int wrong(const std::string& error, const std::string& remedy) {
  (void)complain(error, remedy);
  return -EINVAL;
}

const FieldName* find_field(const pmd::RegWord& word, std::string_view name, std::string* known) {
  for (const FieldName& field : word.reg->fields) {
    if (name.size() == std::string_view(field.name).size() && pmd::begins_with(name, field.name)) {
      return &field;
    }
    *known += (known->empty() ? "" : ", ") + std::string(field.name);
  }
  return nullptr;
}

/// "enable=0" into `value`.
int set_field(const pmd::RegWord& word, const std::string& text, uint32_t* value) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  std::string known;
  const FieldName* field = find_field(word, name, &known);
  if (field == nullptr) {
    return wrong(word.name() + " has no field '" + name + "'",
                 known.empty() ? "it has none; write a number" : "its fields are " + known);
  }
  const uint64_t most = (uint64_t{1} << field->width) - 1;
  uint64_t number = 0;
  if (!base::read_number(text.substr(equals + 1), 0, most, &number)) {
    return wrong("'" + text + "': not a number of " + std::to_string(field->width) + " bits",
                 "write " + name + "=0 to " + name + "=" + std::to_string(most));
  }
  *value = static_cast<uint32_t>((*value & ~(most << field->lsb)) | number << field->lsb);
  return 0;
}

}  // namespace

int plan_write(pmd::Card& card, const pmd::RegWord& word, const std::vector<std::string>& values,
               RegWrite* out) {
  if (!word.reg->host) {
    (void)complain(word.name() + " is the card's; the host must not write it",
                   "write a word of the host's: 'rio-tool --json regs dump' tells the owner of "
                   "each");
    return -EPERM;
  }
  RegWrite write{word, 0, 0};
  if (const int rc = card.reg_read(word.offset(), &write.before); rc != 0) {
    (void)complain(apps::access_error("read", word, rc), "see what the log says above");
    return rc;
  }
  write.value = write.before;
  for (const std::string& text : values) {
    uint64_t number = 0;
    if (text.find('=') != std::string::npos) {
      if (const int rc = set_field(word, text, &write.value); rc != 0) {
        return rc;
      }
    } else if (values.size() > 1) {
      return wrong("'" + text + "' beside other values", "write one number, or FIELD=NUMBER only");
    } else if (!base::read_number(text, 0, UINT32_MAX, &number)) {
      return wrong("'" + text + "' is not a 32-bit number", "write it as 16 or 0x10");
    } else {
      write.value = static_cast<uint32_t>(number);
    }
  }
  *out = write;
  return 0;
}

int carry_out(pmd::Card& card, const RegWrite& write) {
  uint32_t after = 0;
  int rc = card.reg_write(write.word.offset(), write.value);
  rc = rc != 0 ? rc : card.reg_read(write.word.offset(), &after);
  if (rc != 0) {
    (void)complain(apps::access_error("write", write.word, rc), "see what the log says above");
    return rc;
  }
  if (after != write.value) {
    char text[64];
    std::snprintf(text, sizeof(text), " holds 0x%08x after 0x%08x was written", after, write.value);
    (void)complain(write.word.name() + text,
                   "a running program may write it as well; 'rio-tool regs watch' shows that");
    return -EIO;
  }
  return 0;
}

}  // namespace rio::tool
