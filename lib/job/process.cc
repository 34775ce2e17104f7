#include "lib/job/process.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "lib/job/barriers.hpp"

namespace rio::job {
namespace {

constexpr uint32_t kCloseMs = 1000;

/// The open processes of this library: one for each port.
struct OpenProcesses {
  std::mutex mutex;
  std::vector<Process*> all;
};
[[nodiscard]] OpenProcesses& open_processes() {
  static OpenProcesses processes;
  return processes;
}

}  // namespace

Process::Process(std::unique_ptr<msg::MessagePort> port, uint16_t fabric, barrier::Way barrier_way)
    : port_(std::move(port)), fabric_(fabric), barrier_way_(barrier_way) {
  const std::lock_guard lock(open_processes().mutex);
  open_processes().all.push_back(this);
}

Process::~Process() {
  close();
}

void Process::close() {
  if (!std::exchange(is_open_, false)) {
    return;
  }
  {
    const std::lock_guard lock(open_processes().mutex);
    std::erase(open_processes().all, this);
  }
  barriers_.reset();
  static_cast<void>(port_->flush(kCloseMs));
}

bool Process::make_name(uint32_t endpoint, Name* out) const {
  const std::string address = port_->address();
  *out = {.magic = kNameMagic,
          .dest_id = port_->dest_id(),
          .owner = port_->instance(),
          .fabric = fabric_,
          .endpoint = static_cast<uint16_t>(endpoint),
          .address = {}};
  if (address.size() >= sizeof(out->address)) {
    return false;
  }
  address.copy(out->address, address.size());
  return true;
}

int Process::reach(const Name& name, uint32_t* dest_id) {
  uint32_t found = name.dest_id;
  if (name.address[0] != 0) {
    const int rc = port_->reach(name.address, &found);
    if (rc == -ENOSPC) {
      base::log_error("rio: no destID left for %s; use several fabrics", name.address);
    }
    if (rc != 0) {
      return rc;
    }
  }
  const bool is_known = name.owner != 0;  // a name that a user typed has no owner
  if (found == port_->dest_id() && is_known && name.owner != port_->instance()) {
    base::log_error(
        "rio: destID %u is claimed by a peer, too; give each its own: FI_RIO_DESTID, or id= in "
        "FI_RIO_CARD",
        found);
    return -EADDRINUSE;
  }
  *dest_id = found;
  return 0;
}

int Process::open_barriers(Barriers** out) {
  if (barriers_ == nullptr) {
    if (const int rc = Barriers::open(*this, &barriers_); rc != 0) {
      return rc;
    }
  }
  *out = barriers_.get();
  return 0;
}

void Process::attend_open_barriers() {
  barriers_->attend();
}

Process* Process::find(uint32_t instance) {
  const std::lock_guard lock(open_processes().mutex);
  const auto is_it = [=](const Process* process) { return process->port_->instance() == instance; };
  const auto found = std::ranges::find_if(open_processes().all, is_it);
  return found == open_processes().all.end() ? nullptr : *found;
}

}  // namespace rio::job
