#include <algorithm>
#include <sstream>

#include "apps/testpmd/console.hpp"
#include "apps/testpmd/text.hpp"
#include "base/number.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/reg_names.hpp"

namespace rio::testpmd {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    words.push_back(word);
  }
  return words;
}

/// How many words of the command's name `words` begins with.
size_t matching(const std::vector<std::string>& name, const std::vector<std::string>& words) {
  size_t n = 0;
  while (n < name.size() && n < words.size() && name[n] == words[n]) {
    ++n;
  }
  return n;
}

/// Possible values of an argument. @param name of the argument. @param before word before it.
std::vector<std::string> values_of(Console& console, std::string_view name,
                                   std::string_view before) {
  const auto& ports = console.session.ports();
  std::vector<std::string> values;
  if (name == "PORT|all") {
    values.emplace_back("all");
    for (const auto& port : ports) {
      values.push_back(std::to_string(port->index));
    }
  } else if (name == "QP") {
    for (uint32_t qp = 0; qp < ports.front()->queue_pairs(); ++qp) {
      values.push_back(std::to_string(qp));
    }
  } else if (name == "RING") {
    for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
      values.emplace_back(pmd::ring_name(ring));
    }
  } else if (name == "desc|cpl") {
    values = {"desc", "cpl"};
  } else if (name == "NAME|OFFSET" || name == "PREFIX") {
    for (const pmd::RegWord& word : pmd::words_of(ports.front()->card(), "")) {
      values.push_back(word.name());
    }
  } else if (name == "OPTION") {
    for (const OptionDef& option : option_table()) {
      if (option.at_prompt) {
        values.emplace_back(option.name);
      }
    }
  } else if (name == "VALUE" && before == "mode") {
    for (const Mode* mode : mode_table()) {
      values.emplace_back(mode->name);
    }
  }
  return values;
}

}  // namespace

std::string usage(const Command& command) {
  return std::string(command.name) + (command.args[0] != '\0' ? " " : "") + command.args;
}

std::vector<Command> all_commands() {
  std::vector<Command> all;
  for (const auto& table : {run_commands(), show_commands(), card_commands()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

int run_line(Console& console, std::string_view line, std::string* error) {
  const std::vector<std::string> words = words_of(line);
  if (words.empty() || words.front().starts_with('#')) {
    return 0;
  }
  std::string near;
  for (const Command& command : all_commands()) {
    const std::vector<std::string> name = words_of(command.name);
    const size_t matched = matching(name, words);
    if (matched == name.size()) {
      const Args args(words.data() + matched, words.size() - matched);
      const std::vector<std::string> wanted = words_of(command.args);
      const auto optional = std::ranges::count(wanted, '[', [](const auto& w) { return w[0]; });
      if (args.size() + static_cast<size_t>(optional) < wanted.size() ||
          args.size() > wanted.size()) {
        return fail(error, "usage: %s", usage(command).c_str());
      }
      return command.run(console, args, error);
    }
    if (matched > 0) {
      near += (near.empty() ? "there are: " : "; ") + usage(command);
    }
  }
  constexpr size_t kShown = 60;  // of what may be anything
  return fail(error, "no command '%s%s'; %s", std::string(line.substr(0, kShown)).c_str(),
              line.size() > kShown ? "…" : "", near.empty() ? "help lists them" : near.c_str());
}

std::vector<std::string> complete_line(Console& console, std::string_view line) {
  std::vector<std::string> words = words_of(line);
  std::string last;
  if (!words.empty() && !line.ends_with(' ')) {
    last = words.back();
    words.pop_back();
  }
  std::vector<std::string> found;
  const auto offer = [&](const std::string& word) {
    if (pmd::begins_with(word, last) && (found.empty() || found.back() != word)) {
      found.push_back(word);
    }
  };
  for (const Command& command : all_commands()) {
    const std::vector<std::string> name = words_of(command.name);
    std::string names = command.args;
    std::erase_if(names, [](char c) { return c == '[' || c == ']'; });
    const std::vector<std::string> args = words_of(names);
    const size_t matched = matching(name, words);
    if (matched == words.size() && matched < name.size()) {
      offer(name[matched]);
    } else if (matched == name.size() && words.size() - matched < args.size()) {
      for (const std::string& word :
           values_of(console, args[words.size() - matched], words.back())) {
        offer(word);
      }
    }
  }
  return found;
}

int ports_of(Console& console, Args args, std::vector<TestPort*>* out, std::string* error) {
  uint64_t number = 0;
  const auto& ports = console.session.ports();
  if (args.empty() || args[0] == "all") {
    for (const auto& port : ports) {
      out->push_back(port.get());
    }
    return 0;
  }
  if (!base::read_bytes(args[0], 0, ports.size() - 1, &number)) {
    return fail(error, "no port '%s'; there are 0 to %zu, or all", args[0].c_str(),
                ports.size() - 1);
  }
  out->push_back(ports[number].get());
  return 0;
}

}  // namespace rio::testpmd
