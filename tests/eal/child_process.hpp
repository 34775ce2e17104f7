/// @file
/// Another process of the test's own program, which reads commands from its standard input, one per
/// line, and answers on its standard output.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rio::test {

inline constexpr int kPatienceMs = 30'000;  ///< patience with a busy machine

/// A child that ends with its parent, or by the destructor.
class ChildProcess {
 public:
  /// @param args after the program's name. A process that could not be started says nothing.
  explicit ChildProcess(const std::vector<std::string>& args);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Next line; "" at the end, or after four times the patience that a child itself has.
  std::string line();
  /// Sends a command. @return false: the child no longer listens.
  bool tell(const std::string& command);
  std::string ask(const std::string& command) { return tell(command) ? line() : ""; }
  /// Kills it with SIGKILL, and waits.
  void kill9();
  /// Waits for its end. @return exit code, or -1.
  int wait();

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string text_;
};

}  // namespace rio::test
