/// @file
/// The host behind which boards are: lets processes join, tells them about each other, and runs the
/// traffic between them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/fd.hpp"
#include "fpga/wire/relay/protocol.hpp"
#include "fpga/wire/relay/traffic.hpp"

namespace rio::wire::relay {

struct HostConfig {
  std::string name;
  uint32_t boards = 1;      ///< 1 to kBoardsMax
  uint32_t processes = 64;  ///< that a board takes
};

/// One thread.
class Host {
 public:
  /// Told about processes, for the log. `what` is a sentence without a full stop.
  using Tell = void (*)(bool trouble, const std::string& what);

  /// @return -EADDRINUSE: there is a relay of this name; -errno; `error` says what and why.
  [[nodiscard]] static int create(const HostConfig& config, Tell tell, std::unique_ptr<Host>* out,
                                  std::string* error);
  /// Processes that are still there hear that the relay is gone. Leaves nothing behind.
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Work until `until` is readable, which is looked at every now and then, also under load.
  void run(const base::Fd& until);

  /// One line of JSON: boards, their processes, and what they have passed on.
  [[nodiscard]] std::string status() const;

 private:
  struct Guest;

  Host(const HostConfig& config, Tell tell);
  bool listen_to(int timeout_ms);
  void accept();
  void on_message(Guest& guest);
  void on_join(Guest& guest, const Control& join, std::vector<base::Fd>& fds);
  [[nodiscard]] int choose_seat(Control* seat, std::string* why) const;
  [[nodiscard]] int open_ends(Guest& guest, std::vector<base::Fd>& fds, base::Fd* memory);
  void on_want(Guest& guest, uint32_t id);
  void refuse(Guest& guest, int error, const std::string& why);
  void say(Guest& guest, const Control& what);
  void send_waiting(Guest& guest);
  void tell_what_happened();
  void leave(uint32_t key, bool honest);
  void set_asleep(bool asleep);
  [[nodiscard]] Guest* guest_of(uint32_t process);
  [[nodiscard]] uint32_t on_board(uint32_t board) const;

  HostConfig config_;
  Tell tell_;
  int owner_;
  base::Fd listener_;
  base::Fd epoll_;
  uint32_t last_process_ = 0;
  std::map<uint32_t, std::unique_ptr<Guest>> guests_;  // by process number
  Traffic traffic_;                                    // uses rings of guests
  uint64_t joined_ = 0;
  uint64_t cut_off_ = 0;
  bool told_pidfd_ = false;
  bool waiting_ = false;  // a process did not take all that was said to it
};

}  // namespace rio::wire::relay
