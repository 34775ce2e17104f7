#include "pmd/bus/vfio/libpci.hpp"

extern "C" {
#include <pci/pci.h>
}

#include <cerrno>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <filesystem>

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
  char text[256];
  va_list args;
  va_start(args, fmt);
  std::vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  base::log_warning("libpci: %s", text);
}

/// Runs a step. No object with a destructor may live here, since longjmp may leave it.
bool guarded(pci_access* access, LibPci::Step step, void* arg) {
  if (setjmp(t_failed) != 0) {  // NOLINT: the only way out of libpci's error function
    return false;
  }
  step(access, arg);
  return true;
}

}  // namespace

LibPci::LibPci(const PciPaths& paths) : folder_(paths.sysfs + "/bus/pci"), access_(pci_alloc()) {
  access_->error = on_error;
  access_->warning = on_warning;
  access_->method = PCI_ACCESS_SYS_BUS_PCI;
  char name[] = "sysfs.path";
  pci_set_param(access_, name, folder_.data());
}

LibPci::~LibPci() {
  pci_cleanup(access_);  // after an error this frees what libpci had linked; a file that it was
                         // reading stays open
}

int LibPci::run(Step step, void* arg) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder_ + "/devices", ignored)) {
    base::log_error(
        "no PCI devices: %s/devices does not exist (is sysfs mounted? mount -t sysfs sysfs "
        "/sys)",
        folder_.c_str());
    return -ENODEV;
  }
  const Step init = [](pci_access* access, void*) { pci_init(access); };
  if ((!ready_ && !guarded(access_, init, nullptr)) || !guarded(access_, step, arg)) {
    base::log_error("libpci: %s: run lspci to see whether the tree below %s is whole", t_message,
                    folder_.c_str());
    return -EIO;
  }
  ready_ = true;
  return 0;
}

}  // namespace rio::pmd::vfio
