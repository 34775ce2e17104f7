/// @file
/// A terminal that shows pages of text, with ncurses.
#pragma once

#include <string>

namespace rio::tool {

/// One at a time; one thread. The terminal is as before when it is destroyed.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Whether the terminal can do it.
  [[nodiscard]] bool usable() const { return terminal_ != nullptr; }
  /// Show `text` below a line `title`, from the line that the user has scrolled to.
  void show(const std::string& title, const std::string& text);
  /// Let time pass; keys scroll. @return false: the user wants to quit (q, or Ctrl-C).
  [[nodiscard]] bool wait(double seconds);

 private:
  void draw();
  [[nodiscard]] bool on_key(int key);

  void* terminal_ = nullptr;
  std::string title_;
  std::string text_;
  int first_line_ = 0;
};

}  // namespace rio::tool
