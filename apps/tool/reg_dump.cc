#include "apps/tool/reg_dump.hpp"

#include <cerrno>
#include <map>
#include <set>

#include "apps/common/registers.hpp"
#include "base/formatted.hpp"
#include "base/number.hpp"
#include "base/text_file.hpp"

namespace rio::tool {
namespace {

using pmd::RegWord;

constexpr const char* kFormat = "riopmd-registers";
constexpr int kVersion = 1;
constexpr size_t kFileBytesMax = size_t{64} << 20;  // a full card's is a tenth of it

/// Report the fault of a file; the rest of the text is the same for all.
int no_dump(const std::string& path, const std::string& what) {
  return complain(path + ": " + what,
                  "give a file that 'rio-tool regs dump --file' wrote, or take a new one", -EINVAL);
}

/// One entry of "registers". @return what is wrong with it, empty if nothing.
std::string parse_entry(const Json& entry, RegValue* out) {
  if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string()) {
    return "an entry without a name";
  }
  const auto& name = entry["name"].get_ref<const std::string&>();
  std::string error;
  RegWord word;
  // A name, not an offset: dumps outlive the register map.
  if (name.find('.') == std::string::npos || pmd::find_register(name, &word, &error) != 0) {
    return "no register '" + base::printable(name) + "'";
  }
  uint32_t value = 0;
  if (!entry.contains("value") || !entry["value"].is_string() ||
      !base::read_number(entry["value"].get_ref<const std::string&>(), &value)) {
    return name + " has no value of 32 bits";
  }
  *out = {word, value};
  return "";
}

std::string text_of(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string()
             ? base::printable(object[key].get<std::string>())
             : "?";
}

}  // namespace

void to_json(Json& json, const RegValue& value) {
  Json fields = Json::object();
  for (const regs::names::FieldName& field : value.word.reg->fields) {
    const uint64_t mask = (uint64_t{1} << field.width) - 1;
    fields[field.name] = value.value >> field.lsb & mask;
  }
  json = {{"name", value.word.name()},
          {"offset", base::formatted("0x%06x", value.word.offset())},
          {"value", base::formatted("0x%08x", value.value)},
          {"owner", value.word.reg->host ? "host" : "card"},
          {"fields", fields}};
}

int take_dump(pmd::Card& card, const std::vector<RegWord>& words, RegDump* out) {
  RegDump dump{card.bus().name(), utc_text(), {}};
  dump.values.reserve(words.size());
  for (const RegWord& word : words) {
    uint32_t value = 0;
    if (const int rc = card.reg_read(word.offset(), &value); rc != 0) {
      return complain(apps::access_error("read", word, rc), "see what the log says above", rc);
    }
    dump.values.push_back({word, value});
  }
  *out = std::move(dump);
  return 0;
}

Json dump_json(const RegDump& dump) {
  return {{"format", kFormat},
          {"version", kVersion},
          {"card", dump.card},
          {"time", dump.time},
          {"registers", dump.values}};
}

int read_dump(const std::string& path, RegDump* out) {
  std::string text;
  std::string error;
  if (const int rc = base::read_text_file(path, kFileBytesMax, &text, &error); rc != 0) {
    return complain("cannot read " + error, "name a file that 'rio-tool regs dump --file' wrote",
                    rc);
  }
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || text_of(json, "format") != kFormat) {
    return no_dump(path, "no dump of registers");
  }
  if (!json.contains("version") || json["version"] != kVersion) {
    return no_dump(path, "a dump of another version than " + std::to_string(kVersion));
  }
  if (!json.contains("registers") || !json["registers"].is_array()) {
    return no_dump(path, "a dump without registers");
  }
  RegDump dump{text_of(json, "card"), text_of(json, "time"), {}};
  std::set<uint32_t> seen;  // offsets
  for (const Json& entry : json["registers"]) {
    RegValue value;
    if (std::string wrong = parse_entry(entry, &value); !wrong.empty()) {
      return no_dump(path, wrong);
    }
    if (!seen.insert(value.word.offset()).second) {
      return no_dump(path, value.word.name() + " is there twice");
    }
    dump.values.push_back(value);
  }
  *out = std::move(dump);
  return 0;
}

std::vector<RegDifference> differences(const RegDump& a, const RegDump& b, bool all) {
  std::map<uint32_t, RegDifference> merged;  // by offset
  for (const RegValue& value : a.values) {
    merged[value.word.offset()] = {value.word, value.value, std::nullopt};
  }
  for (const RegValue& value : b.values) {
    RegDifference& both = merged[value.word.offset()];
    both.word = value.word;
    both.b = value.value;
  }
  std::vector<RegDifference> out;
  for (const auto& [offset, both] : merged) {
    if (both.a != both.b && (all || offset != regs::id::heartbeat())) {
      out.push_back(both);
    }
  }
  return out;
}

}  // namespace rio::tool
