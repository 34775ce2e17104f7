#include "apps/tool/system/sysfs_writer.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace rio::tool {
namespace {

using std::chrono::milliseconds;

/// Explain an error of a write to sysfs, with the remedy.
std::string remedy_of(int rc) {
  switch (rc) {
    case -EACCES:
    case -EPERM:
      return "run it with sudo; in a container the host must do it";
    case -EROFS:
      return "sysfs is mounted read-only, as in a container: run it on the host";
    case -ENOENT:
      return "the kernel has no such file for this device: see uname -r, and lspci -vv";
    case -EBUSY:
      return "a program uses it: rio-tool doctor names it";
    case -ENODEV:
    case -EINVAL:
      return "dmesg | tail says why the kernel refused";
    default:
      return "dmesg | tail may say more";
  }
}

}  // namespace

int SysfsWriter::write(const std::string& path, const std::string& text,
                       const std::string& refusal) {
  writes_.push_back({{"path", path}, {"text", text}});
  text_.append("echo ").append(text.empty() ? "" : text + " ").append("> " + path + "\n");
  if (dry_run_) {
    return 0;
  }
  const int rc = pci::write_text(path, text + "\n");
  if (rc != 0) {
    const bool refused = rc != -EACCES && rc != -EPERM && rc != -EROFS && !refusal.empty();
    (void)complain("cannot write \"" + text + "\" to " + path + ": " + std::strerror(-rc),
                   refused ? refusal : remedy_of(rc));
  }
  return rc;
}

bool SysfsWriter::wait_for(const std::function<bool()>& done) const {
  static constexpr milliseconds kPause(5);
  static constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    if (dry_run_ || done()) {
      return true;
    }
    std::this_thread::sleep_for(kPause);
  }
  return done();
}

}  // namespace rio::tool
