// The prompt itself, by libedit, and command files.
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <editline/readline.h>

#include "apps/testpmd/console.hpp"
#include "apps/testpmd/interrupt.hpp"
#include "apps/testpmd/report.hpp"

namespace rio::testpmd {
namespace {

Console* g_console = nullptr;  // libedit's completion takes no context

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
    size_t same = 0;
    while (same < common.size() && same < word.size() && common[same] == word[same]) {
      ++same;
    }
    common.resize(same);
    matches[i + 1] = strdup(word.c_str());
  }
  matches[0] = strdup(common.c_str());
  matches[whole.size() + 1] = nullptr;
  return matches;
}

/// A run that came to its end by itself: say what it gave.
void collect(Session& session) {
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
  for (uint32_t number = 1; !console.quit && std::getline(file, line); ++number) {
    std::string why;
    if (run_line(console, line, &why) != 0) {
      *error = path + ":" + std::to_string(number) + ": " + why;
      return kExitUsage;
    }
  }
  return kExitOk;
}

void prompt(Console& console) {
  const bool tty = isatty(STDIN_FILENO) != 0;
  g_console = &console;
  rl_readline_name = const_cast<char*>("rio-testpmd");
  rl_attempted_completion_function = complete;
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
  }
}

}  // namespace

int run_console(Session& session, std::string* error) {
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
