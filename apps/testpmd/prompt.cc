// The prompt itself, by libedit, and command files.
#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <editline/readline.h>

#include "apps/common/std_streams.hpp"
#include "apps/testpmd/console.hpp"
#include "apps/testpmd/report.hpp"
#include "apps/testpmd/watch.hpp"
#include "base/text_file.hpp"

namespace rio::testpmd {
namespace {

Console* g_console = nullptr;  // libedit's completion takes no context

/// A character for libedit. Its own reading goes on after a signal. @return EOF: end of input, or
/// Ctrl-C.
int read_char(FILE* /*from*/) {
  constexpr int kLookMs = 100;  // a signal may come just before the wait, or to another thread
  while (!interrupted()) {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&input, 1, kLookMs) <= 0) {
      continue;
    }
    unsigned char c = 0;
    const ssize_t got = read(STDIN_FILENO, &c, 1);
    if (got == 1) {
      return c;
    }
    if (got == 0 || errno != EINTR) {
      return EOF;
    }
  }
  return EOF;
}

/// libedit prints the prompt and takes the terminal over after that: a Ctrl-D typed in between
/// would reach it as a character of no meaning. Take it over before the prompt.
int take_terminal() {
  rl_prep_terminal(1);
  return 0;
}

/// Completion of libedit: what may stand in place of the last word.
char** complete(const char*, int start, int end) {
  const std::string line(rl_line_buffer, static_cast<size_t>(end));
  const std::vector<std::string> whole = complete_line(*g_console, line);
  if (whole.empty()) {
    return nullptr;
  }
  // matches[0] is what all have in common, then the matches themselves.
  auto** matches = static_cast<char**>(std::malloc((whole.size() + 2) * sizeof(char*)));
  if (matches == nullptr) {
    return nullptr;
  }
  std::string common = whole.front().substr(static_cast<size_t>(start));
  for (size_t i = 0; i < whole.size(); ++i) {
    const std::string word = whole[i].substr(std::min(whole[i].size(), static_cast<size_t>(start)));
    common.erase(std::mismatch(common.begin(), common.end(), word.begin(), word.end()).first,
                 common.end());
    matches[i + 1] = strdup(word.c_str());
  }
  matches[0] = strdup(common.c_str());
  matches[whole.size() + 1] = nullptr;
  return matches;
}

/// A run that came to its end by itself: say what it gave.
void collect(TestRun& session) {
  if (session.running() != nullptr && session.running()->wait_for(std::chrono::milliseconds(0))) {
    std::fputs(totals_text(session.finish()).c_str(), stdout);
  }
}

/// @return false at the end of input.
bool read_line(bool tty, std::string* line) {
  char* text = nullptr;
  if (tty) {
    text = readline("rio-testpmd> ");
  } else {
    size_t size = 0;
    if (getline(&text, &size, stdin) < 0) {
      std::free(text);
      text = nullptr;
    }
  }
  if (text == nullptr) {
    return false;
  }
  *line = text;
  std::free(text);
  while (!line->empty() && (line->back() == '\n' || line->back() == '\r')) {
    line->pop_back();
  }
  if (tty && !line->empty()) {
    add_history(line->c_str());
  }
  return true;
}

int run_file(Console& console, const std::string& path, std::string* error) {
  std::ifstream file(path);
  if (!file) {
    *error = "--cmdline-file: cannot read " + path + " (" + std::strerror(errno) + ")";
    return kExitUsage;
  }
  std::string line;
  for (uint32_t number = 1; !console.quit && !interrupted() && std::getline(file, line); ++number) {
    if (number == 1) {
      base::drop_byte_order_mark(&line);
    }
    std::string why;
    if (run_line(console, line, &why) != 0) {
      *error =
          std::string(path).append(":").append(std::to_string(number)).append(": ").append(why);
      return kExitUsage;
    }
  }
  if (file.bad()) {  // a folder, for one
    *error = "--cmdline-file: cannot read " + path + " (" + std::strerror(errno) +
             "); give a file of commands";
    return kExitUsage;
  }
  return kExitOk;
}

void prompt(Console& console) {
  const bool tty = isatty(STDIN_FILENO) != 0;
  g_console = &console;
  rl_readline_name = const_cast<char*>("rio-testpmd");
  rl_attempted_completion_function = complete;
  rl_getc_function = read_char;
  rl_pre_input_hook = take_terminal;
  std::string line;
  while (!console.quit) {
    forget_interrupt();
    if (!read_line(tty, &line)) {
      return;
    }
    collect(console.session);
    std::string error;
    if (run_line(console, line, &error) != 0) {
      std::fflush(stdout);
      std::fprintf(stderr, "error: %s\n", error.c_str());
    }
    std::fflush(stdout);
    if (apps::output_is_lost()) {
      return;
    }
  }
}

}  // namespace

int run_console(TestRun& session, std::string* error) {
  Console console{session};
  const Options& options = session.options;
  if (!options.cmdline_file.empty()) {
    const int code = run_file(console, options.cmdline_file, error);
    if (code != kExitOk) {
      return code;
    }
  }
  if (options.auto_start && session.running() == nullptr &&
      session.start(options.sizes.front(), error) != 0) {
    return kExitUsage;
  }
  if (options.interactive && !console.quit) {
    prompt(console);
  }
  if (session.running() != nullptr) {
    if (!options.interactive && (options.seconds > 0 || options.count > 0)) {
      watch(session);
    }
    session.running()->request_stop();
    std::fputs(totals_text(session.finish()).c_str(), stdout);
  }
  return session.exit_code();
}

}  // namespace rio::testpmd
