#include "base/text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fd.hpp"

namespace rio::base {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";

/// Explain an error, to be put behind the path.
[[nodiscard]] std::string why(int rc, size_t bytes_max) {
  switch (rc) {
    case -EISDIR:
      return " is a folder; give a file";
    case -EFBIG:
      return " has more than " + std::to_string(bytes_max) + " bytes; is it the right file?";
    case -EILSEQ:
      return " is not UTF-8 text; save it as UTF-8";
    default:
      return std::string(": ") + std::strerror(-rc);
  }
}

/// @param out gets what was read, even if the file is too long.
[[nodiscard]] int read_all(int fd, size_t bytes_max, std::string* out) {
  constexpr size_t kPiece = 65536;
  for (size_t used = 0;;) {
    out->resize(used + std::min(kPiece, bytes_max + 1 - used));
    const ssize_t count = read(fd, out->data() + used, out->size() - used);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    out->resize(used + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    used = out->size();
    if (count <= 0) {
      return count == 0 ? 0 : -errno;
    }
    if (used > bytes_max) {
      return -EFBIG;
    }
  }
}

[[nodiscard]] int read_text(const std::string& path, size_t bytes_max, std::string* out) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return -errno;
  }
  if (const int rc = read_all(fd.get(), bytes_max, out); rc != 0) {
    return rc;
  }
  drop_byte_order_mark(out);
  // UTF-16 shows by its byte order mark, or by zero bytes.
  const bool is_text = !out->starts_with("\xFF\xFE") && !out->starts_with("\xFE\xFF") &&
                       out->find('\0') == std::string::npos;
  return is_text ? 0 : -EILSEQ;
}

}  // namespace

void drop_byte_order_mark(std::string* text) {
  if (text->starts_with(kMark)) {
    text->erase(0, kMark.size());
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr const char* kBlank = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

int read_text_file(const std::string& path, size_t bytes_max, std::string* out,
                   std::string* error) {
  std::string text;
  if (const int rc = read_text(path, bytes_max, &text); rc != 0) {
    *error = path + why(rc, bytes_max);
    return rc;
  }
  *out = std::move(text);
  return 0;
}

}  // namespace rio::base
