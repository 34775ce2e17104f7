/// @file
/// A process of a job, as its peers find it: its port, its names, and its barriers.
#pragma once

#include <cstdint>
#include <memory>

#include "base/guard.hpp"
#include "lib/barrier/group.hpp"
#include "lib/job/name.hpp"
#include "lib/msg/message_port.hpp"

namespace rio::job {

class Barriers;

/// A port with what lib/ofi and lib/ompi both build on it. Thread rule: all functions but find()
/// are called as those of the port.
class Process {
 public:
  /// @param fabric fabric_mark() of the fabric's name. @param barrier_way what carries barriers.
  Process(std::unique_ptr<msg::MessagePort> port, uint16_t fabric, barrier::Way barrier_way);
  /// As close(), if that was not called. All other contexts of the port must be closed before.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// End the barriers and let sent messages arrive, for up to a second. find() finds it no more.
  void close();

  [[nodiscard]] msg::MessagePort& port() { return *port_; }
  [[nodiscard]] const msg::MessagePort& port() const { return *port_; }
  [[nodiscard]] uint16_t fabric() const { return fabric_; }
  [[nodiscard]] barrier::Way barrier_way() const { return barrier_way_; }

  /// The name of an endpoint. @param endpoint below kEndpoints. @return false: the card's address
  /// is too long for it.
  [[nodiscard]] bool make_name(uint32_t endpoint, Name* out) const;
  /// Find the destID to which messages for a name go. Logged.
  /// @return 0, -EADDRINUSE: the peer has our destID; as msg::MessagePort::reach().
  [[nodiscard]] int reach(const Name& name, uint32_t* dest_id);

  /// The barriers of this process; the first call opens them. Logged.
  /// @return 0, or as barrier::BarrierContext::create().
  [[nodiscard]] int open_barriers(Barriers** out);
  /// Hot. Let the barriers work, if there are any. Called after progress of the port.
  void attend_barriers() {
    if (barriers_ != nullptr) [[unlikely]] {
      attend_open_barriers();
    }
  }
  /// The open one of this library whose port has this instance() number; null: none. Any thread;
  /// the caller knows that it stays open.
  [[nodiscard]] static Process* find(uint32_t instance);

 private:
  void attend_open_barriers();

  std::unique_ptr<msg::MessagePort> port_;
  const uint16_t fabric_;
  const barrier::Way barrier_way_;
  bool is_open_ = true;
  std::unique_ptr<Barriers> barriers_;  // null: not used yet
};

/// Runs a call that creates or destroys an object: no exception leaves it, and no thread is
/// cancelled inside of it. @return what the call returns; -ENOMEM; -EIO: an unexpected exception.
template <class Function>
[[nodiscard]] int no_throw(Function&& function) noexcept {
  static constexpr base::Boundary kProcess = {"rio: out of memory",
                                              "rio: unexpected exception; please report it", -EIO};
  return base::guard(kProcess, function);
}

}  // namespace rio::job
