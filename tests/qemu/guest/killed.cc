// A process that is killed while it has a card, and while a child that it has forked lives on.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/folder.hpp"
#include "tests/qemu/guest/guest.hpp"

namespace rio::guest {
namespace {

/// Files of hugepages that processes without EAL have left.
long left_files() {
  const auto names = base::names_in("/dev/hugepages");
  return std::count_if(names.begin(), names.end(),
                       [](const std::string& name) { return name.starts_with("riopmd-"); });
}

/// Passes a message, forks a child that lives until the pipe is closed, and kills itself as soon as
/// the child runs. Before that, the child has not yet closed what it inherited of the card.
[[noreturn]] void use_and_die(const std::string& name, const int (&until)[2]) {
  Station card;
  int runs[2];
  if (card.open(name) && card.pass(card, 1000, 1) && pipe(runs) == 0) {
    char none = 0;
    if (fork() == 0) {
      ::close(until[1]);
      ::close(runs[1]);
      _exit(read(until[0], &none, 1) == 0 ? 0 : 1);
    }
    ::close(runs[1]);
    if (read(runs[0], &none, 1) == 0) {
      raise(SIGKILL);
    }
  }
  _exit(1);
}

}  // namespace

/// killed CARD: the next process can open the card. Under UIO the killed one's memory is left until
/// then, and no longer.
int killed(const Arguments& args) {
  int until[2];
  if (pipe(until) != 0) {
    return fail("no pipe");
  }
  const pid_t user = fork();
  if (user == 0) {
    use_and_die(args[0], until);
  }
  int status = 0;
  if (waitpid(user, &status, 0) != user || !WIFSIGNALED(status)) {
    return fail("the first process could not use the card: status %d", status);
  }
  const auto driver =
      std::filesystem::read_symlink("/sys/bus/pci/devices/" + args[0] + "/driver").filename();
  if (driver == "vfio-pci") {
    // A card that is no bus master any more reaches nothing. The emulated one goes on, and finds
    // that its rings are gone: four have entries and completions, two have completions only.
    fact("faults", 4 * 2 + 2);
  }
  const long left = left_files();
  if ((left != 0) != (driver == "uio_pci_generic")) {
    return fail("%ld files of hugepages are left", left);
  }
  Station card;
  if (!card.open(args[0]) || !card.pass(card, 1000, 2) || card.close() != 0) {
    return 1;
  }
  ::close(until[1]);
  return left_files() == 0 ? 0 : fail("%ld files of hugepages are left in the end", left_files());
}

}  // namespace rio::guest
