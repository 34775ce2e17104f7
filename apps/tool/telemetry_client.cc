#include "apps/tool/telemetry_client.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "apps/tool/system/files.hpp"
#include "base/number.hpp"
#include "base/unix_socket.hpp"

namespace rio::tool {
namespace {

constexpr const char* kSocketName = "dpdk_telemetry.v2";  // with ":1" … for --in-memory programs
constexpr size_t kSocketsMax = 256;
constexpr std::chrono::milliseconds kTimeout(500);  // of each wait

}  // namespace

int TelemetryClient::connect(const std::string& path) {
  TelemetryClient fresh;
  fresh.deadline_ = deadline_;
  // Not blocking: a program that never accepts must not hold us.
  if (const int rc = base::connect_to(path, SOCK_SEQPACKET, &fresh.socket_); rc != 0) {
    return rc == -EAGAIN ? -ETIMEDOUT : rc;
  }
  std::string text;
  if (const int rc = fresh.receive(&text); rc != 0) {
    return rc;
  }
  const Json greeting = Json::parse(text, nullptr, false);
  if (!greeting.is_object() || !greeting.contains("version") || !greeting["version"].is_string() ||
      !greeting.contains("pid") || !greeting["pid"].is_number_unsigned()) {
    return -EPROTO;
  }
  fresh.version_ = base::printable(greeting["version"].get<std::string>());
  fresh.pid_ = greeting["pid"].get<uint64_t>();
  *this = std::move(fresh);
  return 0;
}

int TelemetryClient::receive(std::string* text) {
  using std::chrono::milliseconds;
  const auto left = deadline_ - std::chrono::steady_clock::now();
  const auto wait = std::clamp<decltype(left)>(left, milliseconds(0), kTimeout);
  pollfd poll_fd{socket_.get(), POLLIN, 0};
  const int ready =
      poll(&poll_fd, 1, static_cast<int>(std::chrono::ceil<milliseconds>(wait).count()));
  if (ready <= 0) {
    return ready == 0 ? -ETIMEDOUT : -errno;
  }
  std::string buffer(kAnswerBytesMax, '\0');
  iovec part{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const ssize_t n = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  if (n <= 0) {
    return n == 0 ? -EPIPE : -errno;
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return -EMSGSIZE;
  }
  buffer.resize(static_cast<size_t>(n));
  *text = std::move(buffer);
  return 0;
}

int TelemetryClient::ask(const std::string& command, Json* answer) {
  if (send(socket_.get(), command.data(), command.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(command.size())) {
    return errno == EAGAIN ? -ETIMEDOUT : -EPIPE;
  }
  std::string text;
  if (const int rc = receive(&text); rc != 0) {
    return rc;
  }
  Json json = Json::parse(text, nullptr, false);
  const std::string name = command.substr(0, command.find(','));
  if (!json.is_object() || json.size() != 1 || !json.contains(name)) {
    return -EPROTO;
  }
  *answer = std::move(json[name]);
  return 0;
}

std::string default_runtime_dir() {
  // As eal_create_runtime_dir().
  if (geteuid() == 0) {
    return "/var/run/dpdk";
  }
  const char* const xdg = std::getenv("XDG_RUNTIME_DIR");
  return std::string(xdg != nullptr ? xdg : "/tmp") + "/dpdk";
}

std::vector<TelemetrySocket> find_sockets(const std::string& runtime_dir) {
  std::vector<TelemetrySocket> sockets;
  for (const std::string& prefix : names_in(runtime_dir)) {
    for (const std::string& name : names_in(joined(runtime_dir, prefix))) {
      if (name.starts_with(kSocketName) && sockets.size() < kSocketsMax) {
        sockets.push_back({base::printable(prefix), joined(joined(runtime_dir, prefix), name)});
      }
    }
  }
  return sockets;
}

}  // namespace rio::tool
