#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "base/text_file.hpp"
#include "pmd/card/shared_card.hpp"

namespace rio::pmd {
namespace {

constexpr uint64_t kStartMask = (uint64_t{1} << 42) - 1;

struct ProcStat {
  char state = 0;
  uint64_t start_ticks = 0;
};

/// proc(5): the name in field 2 may hold blanks and parentheses, so count from the last ')'.
bool read_stat(uint32_t pid, ProcStat* out) {
  constexpr size_t kBytesMax = 4096;
  std::string text;
  std::string why;
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  if (base::read_text_file(path, kBytesMax, &text, &why) != 0) {
    return false;
  }
  const size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) {
    return false;
  }
  std::istringstream fields(text.substr(name_end + 2));
  fields >> out->state;
  for (int field = 4; field < 22; ++field) {
    std::string other;
    fields >> other;
  }
  return static_cast<bool>(fields >> out->start_ticks);
}

/// Whether a process whose first thread has ended (state Z) has others that go on.
bool has_other_threads(uint32_t pid) {
  std::error_code error;
  std::filesystem::directory_iterator thread("/proc/" + std::to_string(pid) + "/task", error);
  int count = 0;
  for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    ++count;
  }
  return count > 1;
}

OwnerToken make_token(uint32_t pid, uint64_t start_ticks) {
  return (static_cast<uint64_t>(pid) << 42) | (start_ticks & kStartMask);
}

}  // namespace

OwnerToken own_token() {
  const auto pid = static_cast<uint32_t>(getpid());
  ProcStat stat;
  return read_stat(pid, &stat) ? make_token(pid, stat.start_ticks) : 0;
}

bool token_alive(OwnerToken token) {
  const uint32_t pid = token_pid(token);
  ProcStat stat;
  if (token == 0 || !read_stat(pid, &stat) || make_token(pid, stat.start_ticks) != token) {
    return false;
  }
  return (stat.state != 'Z' && stat.state != 'X') || has_other_threads(pid);
}

}  // namespace rio::pmd
