#include "pmd/bus/vfio/libpci.hpp"

extern "C" {
#include <pci/pci.h>
}

#include <cerrno>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/formatted.hpp"
#include "base/log.hpp"

namespace rio::pmd::vfio {
namespace {

// libpci's error function must not return. The frames between it and setjmp are C, or a Step.
thread_local std::jmp_buf t_failed;
thread_local char t_message[256];

__attribute__((noreturn)) void on_error(char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  std::vsnprintf(t_message, sizeof(t_message), fmt, args);
  va_end(args);
  std::longjmp(t_failed, 1);
}

void on_warning(char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  base::log_warning("libpci: %s", base::formatted_list(fmt, args).c_str());
  va_end(args);
}

/// Runs a step. No object with a destructor may live here, since longjmp may leave it.
bool guarded(pci_access* access, PciStep step, void* arg) {
  if (setjmp(t_failed) != 0) {  // NOLINT: the only way out of libpci's error function
    return false;
  }
  pci_init(access);
  step(access, arg);
  return true;
}

}  // namespace

int run_libpci(const PciPaths& paths, PciStep step, void* arg,
               const std::function<void(pci_access*)>& read) {
  std::string folder = paths.sysfs + "/bus/pci";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder + "/devices", ignored)) {
    base::log_error(
        "no PCI devices: %s/devices does not exist (is sysfs mounted? mount -t sysfs sysfs "
        "/sys)",
        folder.c_str());
    return -ENODEV;
  }
  // After an error the clean-up frees what libpci had linked; a file that it was reading stays
  // open.
  const std::unique_ptr<pci_access, decltype(&pci_cleanup)> access(pci_alloc(), &pci_cleanup);
  access->error = on_error;
  access->warning = on_warning;
  access->method = PCI_ACCESS_SYS_BUS_PCI;
  char name[] = "sysfs.path";
  pci_set_param(access.get(), name, folder.data());
  if (!guarded(access.get(), step, arg)) {
    base::log_error("libpci: %s: run lspci to see whether the tree below %s is whole", t_message,
                    folder.c_str());
    return -EIO;
  }
  if (read) {
    read(access.get());
  }
  return 0;
}

}  // namespace rio::pmd::vfio
