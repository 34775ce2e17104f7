#include "apps/tool/global_options.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "apps/common/columns.hpp"
#include "base/formatted.hpp"

namespace rio::tool {

std::string json_text(const Json& data, int indent) {
  return data.dump(indent, ' ', false, Json::error_handler_t::replace);
}

int print_result(const GlobalOptions& context, const Json& data, const std::string& text,
                 int indent) {
  if (context.json) {
    std::printf("%s\n", json_text(data, indent).c_str());
  } else {
    std::fputs(text.c_str(), stdout);
  }
  return kExitOk;
}

int write_file(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file) {
    return 0;
  }
  const int error = errno != 0 ? errno : EIO;
  return complain("cannot write " + path + ": " + std::strerror(error),
                  "name a file in a folder that you may write to", -error);
}

std::string TextTable::text() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], apps::columns_of(row[i]));
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      line += apps::padded(row[i], widths[i] + 2);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string utc_text(std::time_t seconds) {
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0 ? "" : text;
}

std::string time_of_day() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const auto ms = duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  return utc_text(system_clock::to_time_t(now)).substr(11, 8) +
         base::formatted(".%03d", static_cast<int>(ms));
}

int complain(const std::string& error, const std::string& remedy, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "rio-tool: error: %s\nrio-tool: remedy: %s\n", error.c_str(),
               remedy.c_str());
  return code;
}

std::string short_number(double value) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return base::formatted(unit == 0 ? "%.0f%s" : "%.2f%s", value, kUnits[unit]);
}

}  // namespace rio::tool
