// Any bytes as the page of a port's rails, which another program has written: what is read of it is
// in range.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/own_folder.hpp"
#include "lib/msg/config.hpp"
#include "lib/msg/rail_page.hpp"

namespace {

using namespace rio;

constexpr size_t kMagicBytes = 8;  // any others are refused at once

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

/// A live page in a folder of its own.
class Victim {
 public:
  Victim() {
    char folder[] = "/tmp/rail_page_fuzz.XXXXXX";
    require(mkdtemp(folder) != nullptr);
    folder_ = folder;
    require(setenv("RIO_RUNTIME_DIR", folder, 1) == 0);
    const std::array<std::string, 2> cards = {"udp:a/0", "udp:b/0"};
    require(page_.create(1, cards) == 0);
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
      if (each.is_regular_file()) {
        file_ = base::Fd(open(each.path().c_str(), O_WRONLY | O_CLOEXEC));
        bytes_ = each.file_size();
      }
    }
    require(file_.valid());
  }
  ~Victim() { std::filesystem::remove_all(folder_); }

  void write(const uint8_t* data, size_t size) {
    std::vector<uint8_t> all(bytes_ - kMagicBytes);
    std::copy_n(data, std::min(size, all.size()), all.begin());
    require(pwrite(file_.get(), all.data(), all.size(), kMagicBytes) ==
            static_cast<ssize_t>(all.size()));
  }

 private:
  std::string folder_;
  msg::RailPage page_;
  base::Fd file_;
  size_t bytes_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Victim victim;
  victim.write(data, size);
  for (const msg::PortRails& port : msg::read_rail_pages()) {
    require(!port.rails.empty() && port.rails.size() <= msg::kRailsMax);
    for (const msg::PortRails::Row& row : port.rails) {
      require(row.card.size() <= 128 && row.card.find('\0') == std::string::npos);
    }
  }
  return 0;
}
