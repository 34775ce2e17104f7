#include "apps/common/registers.hpp"

#include <cerrno>
#include <cstring>

#include "base/formatted.hpp"

namespace rio::apps {

using pmd::RegWord;

std::string word_line(const RegWord& word, uint32_t value) {
  std::string line =
      base::formatted("  0x%06x  %-26s 0x%08x  ", word.offset(), word.name().c_str(), value) +
      pmd::fields_text(word.reg->fields, value);
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
