#include <cerrno>
#include <sstream>

#include "apps/testpmd/console.hpp"
#include "base/number.hpp"
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

}  // namespace

std::string usage(const Command& command) {
  return std::string(command.name) + (command.args[0] != '\0' ? " " : "") + command.args;
}

std::vector<const Command*> all_commands() {
  std::vector<const Command*> all;
  for (const auto& table : {run_commands(), show_commands(), reg_commands(), desc_commands()}) {
    for (const Command& command : table) {
      all.push_back(&command);
    }
  }
  return all;
}

int run_line(Console& console, std::string_view line, std::string* error) {
  const std::vector<std::string> words = words_of(line);
  if (words.empty() || words.front().starts_with('#')) {
    return 0;
  }
  std::string near;
  for (const Command* command : all_commands()) {
    const std::vector<std::string> name = words_of(command->name);
    const size_t matched = matching(name, words);
    if (matched < name.size()) {
      if (matched > 0) {
        near += (near.empty() ? "" : "; ") + usage(*command);
      }
      continue;
    }
    const Args args(words.data() + name.size(), words.size() - name.size());
    if (args.size() < command->min_args || args.size() > command->max_args) {
      *error = "usage: " + usage(*command);
      return -EINVAL;
    }
    return command->run(console, args, error);
  }
  constexpr size_t kShown = 60;  // of what may be anything
  *error = "no command '" + std::string(line.substr(0, kShown)) +
           (line.size() > kShown ? "…" : "") + "'; " +
           (near.empty() ? "help lists them" : "there are: " + near);
  return -EINVAL;
}

std::vector<std::string> complete_line(Console& console, std::string_view line) {
  std::vector<std::string> words = words_of(line);
  std::string last;
  if (!words.empty() && !line.ends_with(' ')) {
    last = words.back();
    words.pop_back();
  }
  std::string before;
  for (const std::string& word : words) {
    before += word + " ";
  }
  std::vector<std::string> found;
  const auto offer = [&](const std::string& word) {
    const std::string whole = before + word;
    if (pmd::begins_with(word, last) && (found.empty() || found.back() != whole)) {
      found.push_back(whole);
    }
  };
  for (const Command* command : all_commands()) {
    const std::vector<std::string> name = words_of(command->name);
    const size_t matched = matching(name, words);
    if (matched == words.size() && matched < name.size()) {
      offer(name[matched]);
    } else if (matched == name.size() && command->candidates != nullptr &&
               words.size() - matched < command->max_args) {
      for (const std::string& word : command->candidates(console, words.size() - matched)) {
        offer(word);
      }
    }
  }
  return found;
}

int ports_of(Console& console, const std::string& text, std::vector<TestPort*>* out,
             std::string* error) {
  uint64_t number = 0;
  auto& ports = console.session.ports();
  if (text == "all") {
    for (const auto& port : ports) {
      out->push_back(port.get());
    }
    return 0;
  }
  if (!base::read_bytes(text, 0, UINT32_MAX, &number) || number >= ports.size()) {
    *error =
        "no port '" + text + "'; there are 0 to " + std::to_string(ports.size() - 1) + ", or all";
    return -EINVAL;
  }
  out->push_back(ports[number].get());
  return 0;
}

std::vector<std::string> port_names(Console& console) {
  std::vector<std::string> names = {"all"};
  for (const auto& port : console.session.ports()) {
    names.push_back(std::to_string(port->index()));
  }
  return names;
}

}  // namespace rio::testpmd
