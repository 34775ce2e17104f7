// The prompt itself, by libedit, and command files.
#include <poll.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

#include <editline/readline.h>

#include "apps/common/std_streams.hpp"
#include "apps/testpmd/console.hpp"
#include "apps/testpmd/report.hpp"
#include "apps/testpmd/text.hpp"
#include "apps/testpmd/watch.hpp"
#include "base/text_file.hpp"

namespace rio::testpmd {
namespace {

Console* g_console = nullptr;  // libedit's completion takes no context
std::vector<std::string> g_matches;

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

/// One of the matches after the other; libedit frees it. @param state 0: the first. @return null:
/// no more.
char* next_match(const char*, int state) {
  static size_t at = 0;
  at = state == 0 ? 0 : at + 1;
  return at < g_matches.size() ? strdup(g_matches[at].c_str()) : nullptr;
}

/// Completion of libedit.
char** complete(const char* word, int, int end) {
  g_matches = complete_line(*g_console, std::string(rl_line_buffer, static_cast<size_t>(end)));
  return rl_completion_matches(word, next_match);
}

/// A run that came to its end by itself: say what it gave.
void collect(TestRun& session) {
  if (session.running() != nullptr && session.running()->wait_for(std::chrono::milliseconds(0))) {
    std::fputs(totals_text(session.finish()).c_str(), stdout);
  }
}

/// @return false at the end of input.
bool read_line(bool tty, std::string* line) {
  if (!tty) {
    const bool got = static_cast<bool>(std::getline(std::cin, *line));
    line->erase(line->find_last_not_of('\r') + 1);
    return got;
  }
  char* const text = readline("rio-testpmd> ");
  if (text == nullptr) {
    return false;
  }
  *line = text;
  std::free(text);
  if (!line->empty()) {
    add_history(line->c_str());
  }
  return true;
}

int run_file(Console& console, const std::string& path, std::string* error) {
  std::ifstream file(path);
  std::string line;
  for (uint32_t number = 1; !console.quit && !interrupted() && std::getline(file, line); ++number) {
    if (number == 1) {
      base::drop_byte_order_mark(&line);
    }
    if (run_line(console, line, error) != 0) {
      return fail(error, "%s:%u: %s", path.c_str(), number, error->c_str());
    }
  }
  if (!file.is_open() || file.bad()) {  // bad: a folder, for one
    return fail(error, "--cmdline-file: cannot read %s (%s); give a file of commands", path.c_str(),
                std::strerror(errno));
  }
  return 0;
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
  if (!options.cmdline_file.empty() && run_file(console, options.cmdline_file, error) != 0) {
    return kExitUsage;
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
