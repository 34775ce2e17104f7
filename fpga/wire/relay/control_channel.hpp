/// @file
/// A process's end of the control channel, and its single thread, which learns of other processes
/// and is rung. It sleeps otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/trouble.hpp"
#include "fpga/wire/half.hpp"
#include "fpga/wire/member_thread.hpp"
#include "fpga/wire/relay/protocol.hpp"

namespace rio::wire::relay {

/// A process's request for a seat at a relay.
struct Ticket {
  std::string relay;           ///< its name
  uint32_t board = kAnyBoard;  ///< from 0; kAnyBoard: the one with the most room
  uint32_t id = 0;             ///< first destID; 0: the lowest free ones
  uint32_t ids = 1;
};

class ControlChannel {
 public:
  /// Join; waits for the relay's answer, at most ten seconds. @param news set when take() has
  /// something; outlives the object, as `thread` does. @return -ENOENT: no such relay; -EBUSY: a
  /// destID is taken, or the board is full; -EINVAL: no such board; -ETIMEDOUT; -errno; `error`
  /// gives the cause.
  [[nodiscard]] static int join(const Ticket& ticket, std::atomic<bool>* news, MemberThread* thread,
                                std::unique_ptr<ControlChannel>* out, std::string* error);
  /// Ends the thread and leaves; does neither in a process forked since.
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  /// The seat that the relay gave.
  [[nodiscard]] const Control& seat() const { return seat_; }
  /// The memory shared with the host.
  [[nodiscard]] const Joint& joint() const { return joint_; }

  // Any thread.
  /// Find the process with a destID. kCame or kNoProcess follows, unless the relay dies.
  void want(uint32_t id);
  /// Get news: kCame, kNoProcess, kGone, or kCut: the relay is gone, or has cut us off. @return
  /// false: there is none.
  [[nodiscard]] bool take(Control* out) { return news_.take(out); }

 private:
  ControlChannel(std::atomic<bool>* news, MemberThread* thread) : thread_(*thread), news_(news) {}
  [[nodiscard]] int ask(const Ticket& ticket, std::string* error);
  [[nodiscard]] int hear_seat(std::vector<base::Fd>* fds, base::Trouble* trouble);
  void run(const std::stop_token& stop);
  [[nodiscard]] bool hear();

  base::Fd socket_;
  Joint joint_;
  Control seat_;
  MemberThread& thread_;
  News<Control> news_;
};

}  // namespace rio::wire::relay
