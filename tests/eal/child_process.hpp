/// @file
/// A test's own program, started once more: it is told what to do on its standard input, a line
/// each, and answers on its standard output.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rio::test {

inline constexpr int kPatienceMs = 30'000;  ///< of a machine with better things to do

/// Dies with its parent, and by the destructor.
class ChildProcess {
 public:
  /// @param args behind the program's name. A process that could not be started says nothing.
  explicit ChildProcess(const std::vector<std::string>& args);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Next line, "" after half a minute or at the end.
  std::string line();
  /// @return false: it does not listen any more.
  bool tell(const std::string& command);
  std::string ask(const std::string& command) { return tell(command) ? line() : ""; }
  /// SIGKILL, and wait.
  void kill9();
  /// @return exit code, or -1.
  int wait();

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string text_;
};

}  // namespace rio::test
