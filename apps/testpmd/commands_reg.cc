// reg read, reg write, reg dump: registers by name or offset.
#include <array>
#include <cerrno>
#include <cstdio>

#include "apps/common/registers.hpp"
#include "apps/testpmd/console.hpp"
#include "base/number.hpp"
#include "pmd/dev/reg_names.hpp"

namespace rio::testpmd {

using pmd::find_register;
using pmd::RegWord;
namespace {

void print_port(const TestPort& port) {
  std::printf("port %u, %s\n", port.index(), port.name().c_str());
}

int print_word(const TestPort& port, const RegWord& word, std::string* error) {
  uint32_t value = 0;
  const int rc = port.card().reg_read(word.offset(), &value);
  if (rc != 0) {
    *error = apps::access_error("read", word, rc);
  } else {
    std::printf("%s\n", apps::word_line(word, value).c_str());
  }
  return rc;
}

int read(Console& console, Args args, std::string* error) {
  std::vector<TestPort*> ports;
  RegWord word;
  if (ports_of(console, args[0], &ports, error) != 0 || find_register(args[1], &word, error) != 0) {
    return -EINVAL;
  }
  const bool several = ports.size() > 1;
  return for_ports(console, args[0], error, [&](const TestPort& port) {
    if (several) {
      print_port(port);
    }
    return print_word(port, word, error);
  });
}

int write(Console& console, Args args, std::string* error) {
  std::vector<TestPort*> ports;
  RegWord word;
  uint64_t value = 0;
  if (ports_of(console, args[0], &ports, error) != 0 || find_register(args[1], &word, error) != 0) {
    return -EINVAL;
  }
  if (!base::read_bytes(args[2], 0, UINT32_MAX, &value)) {
    *error = "'" + args[2] + "' is not a 32-bit number, such as 0x10";
    return -EINVAL;
  }
  for (const TestPort* port : ports) {
    const int rc = port->card().reg_write(word.offset(), static_cast<uint32_t>(value));
    if (rc != 0) {
      *error = apps::access_error("write", word, rc);
      return rc;
    }
  }
  return 0;
}

int dump(Console& console, Args args, std::string* error) {
  const std::string prefix = args.size() > 1 ? args[1] : "";
  uint32_t shown = 0;
  int rc = for_ports(console, args[0], error, [&](const TestPort& port) {
    print_port(port);
    for (const RegWord& word : pmd::words_of(port.card(), prefix)) {
      if (const int failed = print_word(port, word, error); failed != 0) {
        return failed;
      }
      ++shown;
    }
    return 0;
  });
  if (rc == 0 && shown == 0) {
    *error = apps::no_such_prefix(prefix);
    rc = -EINVAL;
  }
  return rc;
}

std::vector<std::string> words(Console& console, size_t index) {
  if (index == 0) {
    return port_names(console);
  }
  std::vector<std::string> names;
  for (const RegWord& word : pmd::words_of(console.session.ports().front()->card(), "")) {
    names.push_back(word.name());
  }
  return names;
}

constexpr std::array kCommands = {
    Command{"reg read", "PORT|all NAME|OFFSET", "a register, with its fields", 2, 2, read, words},
    Command{"reg write", "PORT|all NAME|OFFSET VALUE", "a register that the host writes", 3, 3,
            write, words},
    Command{"reg dump", "PORT|all [PREFIX]", "all registers, or those that begin so", 1, 2, dump,
            words},
};

}  // namespace

std::span<const Command> reg_commands() {
  return kCommands;
}

}  // namespace rio::testpmd
