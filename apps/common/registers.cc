#include "apps/common/registers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rio::apps {

using pmd::RegWord;

std::vector<RegWord> words_of(const pmd::Card& card, std::string_view prefix) {
  std::vector<RegWord> words;
  for (const regs::names::RegName& reg : regs::names::kRegisters) {
    const uint32_t instances =
        reg.instances > 1 ? std::min(reg.instances, card.caps().queue_pairs) : 1;
    for (uint32_t n = 0; n < instances * reg.count; ++n) {
      const RegWord word{&reg, n / reg.count, n % reg.count};
      if (card.blocks().owner_of(word.offset()) != pmd::BlockList::Owner::kNone &&
          pmd::begins_with(word.name(), prefix)) {
        words.push_back(word);
      }
    }
  }
  return words;
}

std::string word_line(const RegWord& word, uint32_t value) {
  char text[80];
  std::snprintf(text, sizeof(text), "  0x%06x  %-26s 0x%08x  ", word.offset(), word.name().c_str(),
                value);
  std::string line = text + pmd::fields_text(word.reg->fields, value);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string access_error(const char* what, const RegWord& word, int rc) {
  std::string error = std::string(what) + " of " + word.name() + ": " + std::strerror(-rc);
  if (rc == -EPERM) {
    error += "; the card writes it, not the host";
  } else if (rc == -ENODEV) {
    error += "; the card is gone, its BAR reads all ones";
  } else if (rc == -ERANGE) {
    error += "; this card's BAR does not reach that far";
  }
  return error;
}

std::string no_such_prefix(std::string_view prefix) {
  return "no register's name begins with '" + std::string(prefix) +
         "'; blocks are id, rx_map, port, qp[N], window[N]";
}

}  // namespace rio::apps
