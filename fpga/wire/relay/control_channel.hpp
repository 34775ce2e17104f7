/// @file
/// A process's end of the control channel, and its single thread, which learns of other processes
/// and is rung. It sleeps otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.hpp"
#include "base/trouble.hpp"
#include "fpga/wire/half.hpp"
#include "fpga/wire/member.hpp"
#include "fpga/wire/poke_target.hpp"
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
  /// something; outlives the object. @return -ENOENT: no such relay; -EBUSY: a destID is taken, or
  /// the board is full; -EINVAL: no such board; -ETIMEDOUT; -errno; `error` gives the cause.
  [[nodiscard]] static int join(const Ticket& ticket, std::atomic<bool>* news,
                                std::unique_ptr<ControlChannel>* out, std::string* error);
  /// Ends the thread and leaves; does neither in a process forked since.
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  /// The seat that the relay gave.
  [[nodiscard]] const Control& seat() const { return seat_; }
  [[nodiscard]] const Half& mine() const { return mine_; }
  [[nodiscard]] const Half& theirs() const { return theirs_; }
  /// An eventfd that wakes the host.
  [[nodiscard]] const base::Fd& host_bell() const { return host_bell_; }

  // Any thread.
  /// Find the process with a destID. kCame or kNoProcess follows, unless the relay dies.
  void want(uint32_t id);
  /// Get news: kCame, kNoProcess, kGone, or kCut: the relay is gone, or has cut us off. @return
  /// false: there is none.
  [[nodiscard]] bool take(Control* out);
  void set_poke(Member::Poke poke, void* ctx) { poke_.set(poke, ctx); }
  void poke_soon();

 private:
  ControlChannel() = default;
  [[nodiscard]] int ask(const Ticket& ticket, std::string* error);
  [[nodiscard]] int hear_seat(std::vector<base::Fd>* fds, base::Trouble* trouble);
  void run(const std::stop_token& stop);
  [[nodiscard]] bool hear();
  void post(const Control& news);

  base::Fd socket_;
  base::Fd bell_;
  base::Fd order_;
  base::Fd host_bell_;
  Half mine_;
  Half theirs_;
  Control seat_;
  std::string relay_;
  int owner_ = 0;  // pid
  std::atomic<bool>* news_flag_ = nullptr;
  std::jthread thread_;

  std::mutex mutex_;
  std::deque<Control> news_;

  PokeTarget poke_;
};

}  // namespace rio::wire::relay
