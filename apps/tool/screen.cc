#include "apps/tool/screen.hpp"

#include <ncurses.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>

namespace rio::tool {
namespace {

constexpr int kSliceMs = 100;

volatile std::sig_atomic_t g_stop = 0;

void on_signal(int) {
  g_stop = 1;
}

}  // namespace

Screen::Screen() {
  terminal_ = newterm(nullptr, stdout, stdin);
  if (terminal_ == nullptr) {
    return;
  }
  g_stop = 0;
  // The terminal is put back by the destructor, not by a signal's default.
  (void)std::signal(SIGINT, on_signal);
  (void)std::signal(SIGTERM, on_signal);
  cbreak();
  noecho();
  curs_set(0);
  keypad(stdscr, TRUE);
  timeout(kSliceMs);
}

Screen::~Screen() {
  if (terminal_ != nullptr) {
    endwin();
    delscreen(static_cast<SCREEN*>(terminal_));
    (void)std::signal(SIGINT, SIG_DFL);
    (void)std::signal(SIGTERM, SIG_DFL);
  }
}

void Screen::show(const std::string& title, const std::string& text) {
  title_ = title;
  text_ = text;
  draw();
}

void Screen::draw() {
  erase();
  attron(A_REVERSE);
  mvaddnstr(0, 0, title_.c_str(), COLS);
  hline(' ', COLS);
  attroff(A_REVERSE);
  const auto lines = static_cast<int>(std::count(text_.begin(), text_.end(), '\n'));
  first_line_ = std::clamp(first_line_, 0, std::max(0, lines - (LINES - 1)));
  size_t at = 0;
  for (int line = 0; at < text_.size() && line - first_line_ < LINES - 1; ++line) {
    const size_t end = std::min(text_.find('\n', at), text_.size());
    if (line >= first_line_) {
      mvaddnstr(1 + line - first_line_, 0, text_.c_str() + at,
                std::min(COLS, static_cast<int>(end - at)));
    }
    at = end + 1;
  }
  refresh();
}

bool Screen::on_key(int key) {
  switch (key) {
    case 'q':
      return false;
    case KEY_DOWN:
      ++first_line_;
      break;
    case KEY_UP:
      --first_line_;
      break;
    case KEY_NPAGE:
      first_line_ += LINES - 2;
      break;
    case KEY_PPAGE:
      first_line_ -= LINES - 2;
      break;
    default:
      break;
  }
  draw();
  return true;
}

bool Screen::wait(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  while (Clock::now() < end) {
    const int key = getch();  // waits for kSliceMs at most
    if (g_stop != 0 || (key != ERR && !on_key(key))) {
      return false;
    }
  }
  return g_stop == 0;
}

}  // namespace rio::tool
