/// @file
/// The host with the boards behind it: lets processes join, tells them about each other, and
/// forwards the traffic between them.
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
  uint32_t processes = 64;  ///< most processes of a board
};

/// The host. One thread.
class Host {
 public:
  /// Reports about processes, for the log. `what` is a sentence without a full stop.
  using Tell = void (*)(bool trouble, const std::string& what);

  /// Create a host. @return -EADDRINUSE: a relay of this name exists; -errno; `error` gives the
  /// cause.
  [[nodiscard]] static int create(const HostConfig& config, Tell tell, std::unique_ptr<Host>* out,
                                  std::string* error);
  /// Tells the remaining processes that the relay is gone. Leaves nothing behind.
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Work until `until` is readable, which is checked now and then, also under load.
  void run(const base::Fd& until);

  /// One line of JSON: boards, their processes, and the traffic forwarded.
  [[nodiscard]] std::string status() const;

 private:
  struct Guest;

  Host(const HostConfig& config, Tell tell);
  bool listen_to(int timeout_ms);
  void accept();
  void on_message(Guest& guest);
  void on_join(Guest& guest, const Control& join, std::vector<base::Fd>& fds);
  [[nodiscard]] int choose_seat(Control* seat, std::string* why) const;
  [[nodiscard]] int open_rings(Guest& guest, std::vector<base::Fd>& fds, base::Fd* memory);
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
  Traffic traffic_;                                    // uses the rings of guests
  uint64_t joined_ = 0;
  uint64_t cut_off_ = 0;
  bool told_pidfd_ = false;
  bool waiting_ = false;  // a process has not accepted all of its messages
};

}  // namespace rio::wire::relay
