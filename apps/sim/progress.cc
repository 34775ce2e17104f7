#include "apps/sim/progress.hpp"

#include <unistd.h>

#include <cstdio>

namespace rio::simapp {
namespace {

constexpr std::chrono::milliseconds kFirst{1000};
constexpr std::chrono::milliseconds kEach{200};
constexpr int kColumns = 70;

}  // namespace

ProgressLine::ProgressLine()
    : is_terminal_(::isatty(STDERR_FILENO) == 1), next_(Clock::now() + kFirst) {}

ProgressLine::~ProgressLine() {
  if (is_shown_) {
    std::fprintf(stderr, "\r%*s\r", kColumns, "");
  }
}

bool ProgressLine::is_due() {
  return is_terminal_ && Clock::now() >= next_;
}

void ProgressLine::show(const std::string& text) {
  next_ = Clock::now() + kEach;
  is_shown_ = true;
  std::fprintf(stderr, "\r%-*.*s", kColumns, kColumns, text.c_str());
}

}  // namespace rio::simapp
