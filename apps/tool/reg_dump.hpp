/// @file
/// The registers of a card at one moment: taken, written to a file, read back, compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/tool/global_options.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/reg_names.hpp"

namespace rio::tool {

/// A word and what it held.
struct RegValue {
  pmd::RegWord word;
  uint32_t value = 0;
};

/// A dump. One thread.
struct RegDump {
  std::string card;  ///< name of the card, for messages
  std::string time;  ///< when, UTC
  std::vector<RegValue> values;
};

/// A word that is not the same in both; `a` or `b` is empty where only the other dump has it.
struct RegDifference {
  pmd::RegWord word;
  std::optional<uint32_t> a;
  std::optional<uint32_t> b;
};

/// Name, offset, value, owner and fields of a word. The JSON library finds it, and makes an array
/// of a vector by it.
void to_json(Json& json, const RegValue& value);

/// Read the words of a card. @return 0, or as Card::reg_read(), said on stderr.
[[nodiscard]] int take_dump(pmd::Card& card, const std::vector<pmd::RegWord>& words, RegDump* out);

/// The dump as it is written to a file.
[[nodiscard]] Json dump_json(const RegDump& dump);
/// Read a file of dump_json(), maybe another user's, maybe damaged: all of it is checked.
/// @return 0, -EINVAL (not such a file), or what reading it says; said on stderr.
[[nodiscard]] int read_dump(const std::string& path, RegDump* out);

/// In the order of the register map. @param all also ID.HEARTBEAT, which always differs.
[[nodiscard]] std::vector<RegDifference> differences(const RegDump& a, const RegDump& b, bool all);

}  // namespace rio::tool
