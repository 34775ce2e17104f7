/// @file
/// A run as its user sees it while it goes on. Ctrl-C ends it cleanly; a second one ends the
/// program.
#pragma once

namespace rio::testpmd {

class TestRun;

/// Install the handlers of SIGINT and SIGTERM.
void catch_interrupts();
/// Since the last forget_interrupt().
[[nodiscard]] bool interrupted();
void forget_interrupt();

/// Show the running run until it is over, or the user interrupts. Main thread.
void watch(TestRun& session);

}  // namespace rio::testpmd
