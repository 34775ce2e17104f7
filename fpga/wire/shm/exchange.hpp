/// @file
/// The single thread of a member: it connects to other members, accepts their calls, and learns of
/// deaths from the kernel. It sleeps otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/trouble.hpp"
#include "fpga/wire/member_thread.hpp"
#include "fpga/wire/shm/directory.hpp"
#include "fpga/wire/shm/link.hpp"
#include "fpga/wire/troubles.hpp"

namespace rio::wire::shm {

struct Event {
  enum Kind : uint8_t {
    kCame,      ///< `link` is up
    kGone,      ///< `link` is down: the process has died, or left
    kNoMember,  ///< no member has destID `id`
  };
  Kind kind = kNoMember;
  uint32_t id = 0;
  std::shared_ptr<Link> link;
};

class Exchange {
 public:
  /// @param news set when take() has something. All but the directory outlives the object.
  /// @param areas of memory that partners may map; null: none, and theirs is not mapped either.
  Exchange(std::unique_ptr<Directory> directory, std::atomic<bool>* news, MemberThread* thread,
           Troubles* troubles, std::shared_ptr<const base::ReadableAreas> areas)
      : directory_(std::move(directory)),
        areas_(std::move(areas)),
        thread_(*thread),
        troubles_(*troubles),
        news_(news) {}
  /// Ends the thread and leaves the fabric; does neither in a process forked since.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  /// Start the thread. @return 0, -errno; `error` gives the cause.
  [[nodiscard]] int start(std::string* error);

  // Any thread.
  /// Find the member with a destID. News kCame or kNoMember follows, unless kCame has already been
  /// given.
  void want(uint32_t id);
  /// End a link whose partner breaks the rules. News kGone follows.
  void cut(const std::shared_ptr<Link>& link);
  /// Get the next news. @return false: there is none.
  [[nodiscard]] bool take(Event* out) { return news_.take(out); }

  [[nodiscard]] const Directory& directory() const { return *directory_; }

 private:
  using Clock = std::chrono::steady_clock;
  using LinkPtr = std::shared_ptr<Link>;

  /// A destID that a sender is waiting for.
  struct Wanted {
    uint32_t tries = 0;
    Clock::time_point next = {};
    int trouble = 0;  // of this process at the last try, -errno
  };
  struct Order {
    LinkPtr cut;  // null: find the member with destID `want`
    uint32_t want = 0;
  };
  enum class Fdkind : uint8_t { kSocket, kProcess, kBell };
  struct Watched {
    Fdkind kind;
    LinkPtr link;
  };

  void run(const std::stop_token& stop);
  void on_event(int fd);
  void take_orders();
  void call_wanted();
  [[nodiscard]] base::Trouble try_out();
  void call(uint32_t id, Wanted& wanted, bool* absent);
  void give_up(uint32_t id, int trouble);
  void hear_nothing(const base::Trouble& trouble);
  void note(const base::Trouble& trouble, const Link& link);
  void accept();
  void on_message(const LinkPtr& link);
  [[nodiscard]] bool on_greeting(const LinkPtr& link, const Greeting& greeting,
                                 std::vector<base::Fd>& fds, base::Trouble* trouble);
  [[nodiscard]] bool settle_others(const LinkPtr& link, const Greeting& greeting);
  [[nodiscard]] bool know(Link& link, base::Trouble* trouble);
  [[nodiscard]] bool may_be(const Link& link, const Greeting& greeting,
                            base::Trouble* trouble) const;
  [[nodiscard]] bool take_windows(Link& link, const Greeting& greeting, std::vector<base::Fd>& fds);
  [[nodiscard]] bool say(Link& link, Say what, const base::Fd* memory,
                         base::Trouble* trouble) const;
  [[nodiscard]] bool up(const LinkPtr& link, base::Trouble* trouble);
  void down(const LinkPtr& link);
  void post(Event event);
  [[nodiscard]] base::Trouble watch_link(const LinkPtr& link);
  [[nodiscard]] base::Trouble watch(int fd, Fdkind kind, const LinkPtr& link);
  void forget(int fd);

  std::unique_ptr<Directory> directory_;
  const std::shared_ptr<const base::ReadableAreas> areas_;
  MemberThread& thread_;
  Troubles& troubles_;
  uint64_t nonce_ = 0;
  base::Fd epoll_;

  // Used by the thread only.
  std::map<int, Watched> watched_;
  std::vector<LinkPtr> links_;
  std::map<uint32_t, Wanted> wanted_;
  bool rung_ = false;
  bool again_ = false;

  News<Event> news_;
  News<Order> orders_{nullptr};
};

}  // namespace rio::wire::shm
