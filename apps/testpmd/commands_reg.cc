// reg read, reg write, reg dump: registers by name or offset.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "apps/testpmd/console.hpp"
#include "apps/testpmd/size_sweep.hpp"
#include "pmd/dev/reg_names.hpp"

namespace rio::testpmd {

using pmd::fields_text;
using pmd::find_register;
using pmd::RegWord;
namespace {

using Args = std::span<const std::string>;

void print_word(const RegWord& word, uint32_t value) {
  std::printf("  0x%06x  %-26s 0x%08x  %s\n", word.offset(), word.name().c_str(), value,
              fields_text(word.reg->fields, value).c_str());
}

int failed(const char* what, const RegWord& word, int rc, std::string* error) {
  *error = std::string(what) + " of " + word.name() + ": " + std::strerror(-rc);
  if (rc == -EPERM) {
    *error += "; the card writes it, not the host";
  } else if (rc == -ENODEV) {
    *error += "; the card is gone, its BAR reads all ones";
  } else if (rc == -ERANGE) {
    *error += "; this card's BAR does not reach that far";
  }
  return rc;
}

int read(Console& console, Args args, std::string* error) {
  std::vector<Port*> ports;
  RegWord word;
  if (ports_of(console, args[0], &ports, error) != 0 || find_register(args[1], &word, error) != 0) {
    return -EINVAL;
  }
  for (const Port* port : ports) {
    uint32_t value = 0;
    const int rc = port->card().reg_read(word.offset(), &value);
    if (rc != 0) {
      return failed("read", word, rc, error);
    }
    print_word(word, value);
  }
  return 0;
}

int write(Console& console, Args args, std::string* error) {
  std::vector<Port*> ports;
  RegWord word;
  uint64_t value = 0;
  if (ports_of(console, args[0], &ports, error) != 0 || find_register(args[1], &word, error) != 0) {
    return -EINVAL;
  }
  if (!parse_number(args[2], UINT32_MAX, &value)) {
    *error = "'" + args[2] + "' is not a 32-bit number, such as 0x10";
    return -EINVAL;
  }
  for (const Port* port : ports) {
    const int rc = port->card().reg_write(word.offset(), static_cast<uint32_t>(value));
    if (rc != 0) {
      return failed("write", word, rc, error);
    }
  }
  return 0;
}

int dump(Console& console, Args args, std::string* error) {
  std::vector<Port*> ports;
  if (ports_of(console, args[0], &ports, error) != 0) {
    return -EINVAL;
  }
  const std::string prefix = args.size() > 1 ? args[1] : "";
  uint32_t shown = 0;
  for (const Port* port : ports) {
    std::printf("port %u, %s\n", port->index(), port->name().c_str());
    for (const regs::names::RegName& reg : regs::names::kRegisters) {
      const uint32_t instances =
          reg.instances > 1 ? std::min(reg.instances, port->card().caps().queue_pairs) : 1;
      for (uint32_t n = 0; n < instances * reg.count; ++n) {
        const RegWord word{&reg, n / reg.count, n % reg.count};
        if (!pmd::begins_with(word.name(), prefix)) {
          continue;
        }
        uint32_t value = 0;
        const int rc = port->card().reg_read(word.offset(), &value);
        if (rc == -ERANGE) {
          continue;
        }
        if (rc != 0) {
          return failed("read", word, rc, error);
        }
        print_word(word, value);
        ++shown;
      }
    }
  }
  if (shown == 0) {
    *error = "no register's name begins with '" + prefix +
             "'; blocks are id, rx_map, port, qp[N], "
             "window[N]";
    return -EINVAL;
  }
  return 0;
}

std::vector<std::string> words(Console& console, size_t index) {
  if (index == 0) {
    return port_names(console);
  }
  std::vector<std::string> names;
  const uint32_t pairs = console.session.ports().front()->card().caps().queue_pairs;
  for (const regs::names::RegName& reg : regs::names::kRegisters) {
    for (uint32_t n = 0; n < std::min(reg.instances, pairs) * reg.count; ++n) {
      names.push_back(RegWord{&reg, n / reg.count, n % reg.count}.name());
    }
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
