#include "fpga/cardsim/monitor.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cinttypes>
#include <map>

#include "base/formatted.hpp"
#include "base/number.hpp"
#include "base/unix_socket.hpp"

namespace rio::cardsim {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kTryEvery(20);
constexpr size_t kMostSaid = 64 * 1024;  // an answer has some hundred bytes

}  // namespace

bool word_after(std::string_view said, std::string_view label, uint64_t* out) {
  const size_t at = said.find(label);
  if (at == std::string_view::npos) {
    return false;
  }
  said.remove_prefix(at + label.size());
  said = said.substr(0, said.find_first_of("\r\n"));
  return said.starts_with(" 0x") && base::read_hex(said.substr(3), UINT64_MAX, out);
}

bool Monitor::connect() {
  const Time now = steady_clock::now();
  if (gone_ || now < next_try_) {
    return false;
  }
  next_try_ = now + kTryEvery;
  said_.clear();
  return base::connect_to(path_, SOCK_STREAM, &socket_) == 0;
}

bool Monitor::take() {
  char bytes[4096];
  for (;;) {
    const ssize_t got = recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0 && said_.size() + static_cast<size_t>(got) <= kMostSaid) {
      said_.append(bytes, static_cast<size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 && errno == EAGAIN) {
      return true;
    }
    socket_.reset();
    gone_ = true;
    return false;
  }
}

void Monitor::serve() {
  if (socket_.valid() || connect()) {
    static_cast<void>(take());
  }
}

int Monitor::wait_for_word(const std::string& label, Time deadline, uint64_t* out) {
  for (;;) {
    if (!take()) {
      return -ENOTCONN;
    }
    // A line without its end is incomplete.
    const size_t at = said_.find(label);
    if (at != std::string::npos && said_.find_first_of("\r\n", at) != std::string::npos) {
      return word_after(said_, label, out) ? 0 : -EPROTO;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) {
      return -ETIMEDOUT;
    }
    pollfd fd{socket_.get(), POLLIN, 0};
    static_cast<void>(poll(&fd, 1, static_cast<int>(left.count()) + 1));
  }
}

int Monitor::read_word(uint64_t address, uint32_t len_bytes, uint64_t* out) {
  serve();
  if (!socket_.valid()) {
    return -ENOTCONN;
  }
  said_.clear();
  const std::string text =
      base::formatted("xp /1%cx 0x%" PRIx64 "\n", len_bytes == 8 ? 'g' : 'w', address);
  if (const int rc = base::send_with_fds(socket_, std::as_bytes(std::span(text)), {}); rc != 0) {
    return rc == -EAGAIN ? -ETIMEDOUT : -ENOTCONN;
  }
  return wait_for_word(base::formatted("%" PRIx64 ":", address),
                       steady_clock::now() + answer_within_, out);
}

std::shared_ptr<Monitor> monitor_at(const std::string& socket_path) {
  static std::map<std::string, std::weak_ptr<Monitor>> all;
  std::shared_ptr<Monitor> monitor = all[socket_path].lock();
  if (monitor == nullptr) {
    monitor = std::make_shared<Monitor>(socket_path);
    all[socket_path] = monitor;
  }
  return monitor;
}

}  // namespace rio::cardsim
