#include "apps/tool/system/holders.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "apps/tool/system/files.hpp"

namespace rio::tool {
namespace {

/// Only these can be a card's or DPDK's; a program may hold thousands of others.
bool matters(const std::string& file) {
  static constexpr std::array<const char*, 5> kParts = {"/dev/vfio/", "/dev/uio", "/resource",
                                                        "/dpdk/", "map_"};
  return std::any_of(kParts.begin(), kParts.end(),
                     [&file](const char* part) { return file.find(part) != std::string::npos; });
}

/// Whether an argument of a program (proc/PID/cmdline, parted by zeros) lets it share its cards:
/// a secondary, or one that becomes what there is room for.
bool shares(const std::string& cmdline) {
  static const std::string kOption = "--proc-type";
  const size_t at = cmdline.find(kOption);
  const size_t value = at + kOption.size() + 1;  // behind "=" or a zero
  return at != std::string::npos && value < cmdline.size() &&
         (cmdline.compare(value, 9, "secondary") == 0 || cmdline.compare(value, 4, "auto") == 0);
}

}  // namespace

OpenFiles::OpenFiles(const pci::PciPaths& paths) : paths_(paths) {
  for (const std::string& name : names_in(paths.proc)) {
    // Not this program itself: it may just be looking at the card.
    if (const auto pid = number_after(name, ""); pid && static_cast<int>(*pid) != getpid()) {
      look_at(joined(paths.proc, name), static_cast<int>(*pid));
    }
  }
  std::sort(processes_.begin(), processes_.end(),
            [](const Process& a, const Process& b) { return a.program.pid < b.program.pid; });
}

void OpenFiles::look_at(const std::string& folder, int pid) {
  Process process;
  std::error_code error;
  std::filesystem::directory_iterator it(folder + "/fd", error);
  complete_ = complete_ && error != std::errc::permission_denied;
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const std::string file = std::filesystem::read_symlink(it->path(), gone).string();
    if (!gone && matters(file)) {
      process.files.push_back(file);
    }
  }
  // A BAR stays mapped after its file was closed.
  std::istringstream lines(text_of(folder + "/maps"));
  for (std::string line; std::getline(lines, line);) {
    const size_t slash = line.find('/');
    if (slash != std::string::npos && matters(line.substr(slash))) {
      process.files.push_back(line.substr(slash));
    }
  }
  if (process.files.empty()) {
    return;
  }
  process.program.pid = pid;
  const std::string name = text_of(folder + "/comm");
  process.program.name = name.empty() ? "?" : name;
  process.program.secondary = shares(text_of(folder + "/cmdline"));
  processes_.push_back(std::move(process));
}

std::vector<Program> OpenFiles::holders_of_any(const std::vector<std::string>& endings) const {
  std::vector<Program> found;
  for (const Process& process : processes_) {
    if (std::ranges::any_of(process.files, [&endings](const std::string& file) {
          return std::ranges::any_of(
              endings, [&file](const std::string& ending) { return file.ends_with(ending); });
        })) {
      found.push_back(process.program);
    }
  }
  return found;
}

std::vector<Program> OpenFiles::holders_of(const pci::PciCard& card) const {
  std::vector<std::string> endings;
  if (card.driver == "vfio-pci" && card.iommu_group >= 0) {
    endings.push_back("/dev/vfio/" + std::to_string(card.iommu_group));
  }
  if (const std::string node = uio_node(paths_, card.address); !node.empty()) {
    endings.push_back("/dev/" + node);
  }
  for (int bar = 0; bar < 6; ++bar) {
    const std::string file = "resource" + std::to_string(bar);
    endings.push_back(joined("/" + card.address, file));
    endings.push_back(joined("/" + card.address, file).append("_wc"));
  }
  return holders_of_any(endings);
}

bool OpenFiles::touches(const std::string& part) const {
  return std::any_of(processes_.begin(), processes_.end(), [&part](const Process& process) {
    return std::any_of(
        process.files.begin(), process.files.end(),
        [&part](const std::string& file) { return file.find(part) != std::string::npos; });
  });
}

std::string uio_node(const pci::PciPaths& paths, const std::string& address) {
  for (const std::string& name : names_in(paths.sysfs + "/bus/pci/devices/" + address + "/uio")) {
    if (number_after(name, "uio")) {
      return name;
    }
  }
  return "";
}

std::string names_of(const std::vector<Program>& programs) {
  std::string text;
  for (const Program& program : programs) {
    text.append(text.empty() ? "" : ", ").append(program.name);
    text.append(" (pid ").append(std::to_string(program.pid)).append(")");
  }
  return text;
}

}  // namespace rio::tool
