/// @file
/// A running DPDK program's telemetry: asked, and not trusted.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/tool/global_options.hpp"
#include "base/fd.hpp"

namespace rio::tool {

/// A connection to one socket (SOCK_SEQPACKET: a greeting, then a JSON answer to each command).
/// One thread; every wait is bounded.
class TelemetryClient {
 public:
  static constexpr size_t kAnswerBytesMax = size_t{1} << 20;

  /// Connect and read the greeting. Says nothing on stderr: programs come and go.
  /// @return 0; -ECONNREFUSED (no listener: left over by a program that died), -EPROTO (no
  /// greeting of DPDK's), -ETIMEDOUT, -ENAMETOOLONG, or what the kernel said.
  [[nodiscard]] int connect(const std::string& path);
  /// @param command "/raw_rio/info,0". @param answer what the program says to it; null if it knows
  /// the command and has nothing to say. @return 0; -EPROTO (no JSON, or no answer to this
  /// command), -EMSGSIZE (too long), -ETIMEDOUT, -EPIPE (it has ended).
  [[nodiscard]] int ask(const std::string& command, Json* answer);
  /// No wait lasts longer than half a second, nor than until then; -ETIMEDOUT after it.
  void set_deadline(std::chrono::steady_clock::time_point deadline) { deadline_ = deadline; }

  [[nodiscard]] uint64_t pid() const { return pid_; }
  /// "DPDK 22.11.11".
  [[nodiscard]] const std::string& version() const { return version_; }

 private:
  [[nodiscard]] int receive(std::string* text);

  base::Fd socket_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  uint64_t pid_ = 0;
  std::string version_;
};

/// Where DPDK's programs of this user have their sockets.
[[nodiscard]] std::string default_runtime_dir();

/// A socket below such a folder.
struct TelemetrySocket {
  std::string prefix;  ///< --file-prefix of the program
  std::string path;
};

/// All there are now, by name; empty if there is no such folder.
[[nodiscard]] std::vector<TelemetrySocket> find_sockets(const std::string& runtime_dir);

}  // namespace rio::tool
