// A stand-in for NVRTC: kernels become libraries for the processor, by g++. What is handed out as machine code is the
// bytes of such a library, which the stand-in for the driver (`driver.cpp`) loads.
//
// The text is preprocessed with `device.h` before it, and then a few words are replaced: inline assembly by a call of
// the function that `device.h` has for the instruction, `__shared__` by a place in a section that the machine knows, and
// kernels get a door that takes pointers to arguments. An instruction that is not emulated is an error of the compiler
// where it would be executed, and nothing where it would not. TILEWORK_EMULATOR_FLAGS are more options for g++.

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <spawn.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

struct Program { std::string source, code, log; };

std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
}
void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// The folder of this library, where `device.h` lies.
std::string own_folder() {
    Dl_info info;
    dladdr((void*)own_folder, &info);
    std::string file = info.dli_fname;
    return file.substr(0, file.rfind('/'));
}

bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
bool is_word(const std::string& text, size_t at, const std::string& word) {
    return text.compare(at, word.size(), word) == 0 && (at == 0 || !in_word(text[at - 1])) &&
        !in_word(at + word.size() < text.size() ? text[at + word.size()] : ' ');
}
size_t find_word(const std::string& text, const std::string& word, size_t from = 0) {
    for (size_t at = from; (at = text.find(word, at)) != std::string::npos; at++) if (is_word(text, at, word)) return at;
    return std::string::npos;
}
size_t skip_space(const std::string& text, size_t at) {
    while (at < text.size() && isspace((unsigned char)text[at])) at++;
    return at;
}
// After a literal, or after what a bracket holds.
size_t skip_string(const std::string& text, size_t at) {
    for (at++; text[at] != '"'; at++) if (text[at] == '\\') at++;
    return at + 1;
}
size_t skip_bracket(const std::string& text, size_t at) {
    int depth = 0;
    do {
        if (text[at] == '"') { at = skip_string(text, at); continue; }
        depth += (text[at] == '(') - (text[at] == ')');
        at++;
    } while (depth > 0 && at < text.size());
    return at;
}
// Parts of a text between separators that are in no bracket and in no literal.
std::vector<std::string> parts(const std::string& text, char separator) {
    std::vector<std::string> all(1);
    for (size_t at = 0; at < text.size();) {
        size_t next = text[at] == '"' ? skip_string(text, at) : text[at] == '(' ? skip_bracket(text, at) : at + 1;
        if (text[at] == separator) all.push_back("");
        else all.back() += text.substr(at, next - at);
        at = next;
    }
    return all;
}
std::string trimmed(const std::string& text) {
    size_t from = text.find_first_not_of(" \t\n;"), to = text.find_last_not_of(" \t\n;");
    return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}
// What literals say together.
std::string said(const std::string& text) {
    std::string all;
    for (size_t at = 0; (at = text.find('"', at)) != std::string::npos;) {
        size_t end = skip_string(text, at);
        for (size_t k = at + 1; k + 1 < end; k++) all += text[k] != '\\' ? text[k] : (k++, ' ');
        at = end;
    }
    return all;
}

struct Translation {
    const std::string& device;
    std::string missing;
    int number = 0;

    // A call of what does not exist, which the compiler reports where it is left after all that is never executed is gone.
    std::string lacking(const std::string& instruction) {
        std::string name = "emulator_lacks_" + std::to_string(number++), words;
        for (char c : instruction.substr(0, 60)) words += c == '"' || c == '\\' ? ' ' : c;
        missing += "extern \"C\" void " + name + "() __attribute__((error(\"" + words + " is not emulated\")));\n";
        return name + "()";
    }

    // `inside` is what the brackets of an asm statement hold: instructions with their operands.
    std::string instructions(const std::string& inside) {
        std::vector<std::string> sections = parts(inside, ':'), operands;
        for (size_t k = 1; k < sections.size() && k < 3; k++) {
            for (const std::string& operand : parts(sections[k], ',')) {
                size_t open = operand.find('(');
                if (open != std::string::npos) operands.push_back(operand.substr(open));
            }
        }
        std::string text = trimmed(said(sections[0]));
        if (text.empty()) return "((void)0)";
        bool several = text[0] == '{' && text.find(';') != std::string::npos;
        return several ? block(text.substr(1, text.rfind('}') - 1), operands) : instruction(text, operands);
    }

    // Instructions in braces, with registers for predicates, labels, jumps where a predicate is false, and what is done
    // where one is true. Registers get names that no operand has.
    std::string block(std::string text, const std::vector<std::string>& operands) {
        const std::string registers = ".reg .pred ", jump = "bra ", own = "emulated_";
        std::string labels, all;
        for (size_t at = 0; (at = text.find(registers, at)) != std::string::npos;) {
            at += registers.size();
            for (std::string& name : parts(text.substr(at, text.find(';', at) - at), ',')) {
                name = trimmed(name);
                all += "bool " + own + name + " = false; ";
                for (size_t from = 0; (from = find_word(text, name, from)) != std::string::npos;) {
                    text.insert(from, own);
                    from += own.size() + name.size();
                }
            }
        }
        for (std::string statement : parts(text, ';')) {
            statement = trimmed(statement);
            size_t end = statement.find_first_of(" \t:");
            if (end != std::string::npos && statement[end] == ':' && statement[end + 1] == ' ') {
                std::string label = statement.substr(0, end);
                labels += "__label__ " + label + "; ";
                all += label + ": ";
                statement = trimmed(statement.substr(end + 1));
            }
            size_t to = statement.find(jump);
            if (statement.empty() || statement.compare(0, registers.size(), registers) == 0) continue;
            if (statement.compare(0, 2, "@!") == 0 && to != std::string::npos) {
                all += "if (!" + statement.substr(2, to - 2) + ") goto " + statement.substr(to + jump.size()) + "; ";
            } else if (statement[0] == '@') {
                size_t space = statement.find(' ');
                all += "if (" + statement.substr(1, space - 1) + ") " + instruction(statement.substr(space + 1), operands) + "; ";
            } else {
                all += instruction(statement, operands) + "; ";
            }
        }
        return "({ " + labels + all + "})";
    }

    std::string instruction(const std::string& text, const std::vector<std::string>& operands) {
        size_t end = text.find_first_of(" \t");
        std::string name = "ptx_" + text.substr(0, end), arguments;
        for (char& c : name) if (!in_word(c)) c = '_';
        if (text.find(';') != std::string::npos || find_word(device, name) == std::string::npos) return lacking(text);
        std::string rest = end == std::string::npos ? "" : text.substr(end);
        for (size_t at = 0; at < rest.size(); at++) {
            if (rest[at] == '%') {
                size_t k = strtoul(&rest[at + 1], nullptr, 10);
                while (at + 1 < rest.size() && isdigit((unsigned char)rest[at + 1])) at++;
                if (k >= operands.size()) return lacking(text);
                arguments += operands[k];
            } else if (!strchr("[]{} ", rest[at])) {
                arguments += rest[at];
            }
        }
        return name + "(" + arguments + ")";
    }

    std::string assembly(const std::string& text) {
        std::string all;
        size_t done = 0;
        for (size_t at; (at = find_word(text, "asm", done)) != std::string::npos;) {
            size_t open = skip_space(text, at + 3);
            if (is_word(text, open, "volatile")) open = skip_space(text, open + 8);
            size_t close = skip_bracket(text, open);
            all += text.substr(done, at - done) + instructions(text.substr(open + 1, close - open - 2));
            done = close;
        }
        return all + text.substr(done);
    }

    static std::string shared_memory(const std::string& text) {
        std::string all;
        size_t done = 0;
        for (size_t at; (at = find_word(text, "__shared__", done)) != std::string::npos; done = at + 10) {
            std::string before = text.substr(done, at - done);
            std::string last = trimmed(before.size() < 8 ? before : before.substr(before.size() - 8));
            if (last.size() >= 6 && last.compare(last.size() - 6, 6, "static") == 0) before.erase(before.rfind("static"));
            if (last.size() >= 6 && last.compare(last.size() - 6, 6, "extern") == 0) {
                // The memory whose size is said by the launch: all declarations of it are of bytes.
                before.erase(before.rfind("extern"));
                size_t end = text.find(';', at), bracket = text.rfind('[', end), from = bracket;
                while (in_word(text[from - 1])) from--;
                all += before + "unsigned char* " + text.substr(from, bracket - from) + " = emulated_door_dynamic";
                at = end - 10;
                continue;
            }
            all += before + "static __attribute__((section(\"emulated_shared\")))";
        }
        return all + text.substr(done);
    }

    // Kernels are renamed, since there may be a function of their name.
    static std::string kernels(const std::string& text, std::set<std::string>& names) {
        std::string all;
        size_t done = 0;
        for (size_t at; (at = find_word(text, "__global__", done)) != std::string::npos;) {
            size_t open = text.find('(', at), from = open;
            while (isspace((unsigned char)text[from - 1])) from--;
            size_t end = from;
            while (in_word(text[from - 1])) from--;
            std::string before = text.substr(done, at - done), name = text.substr(from, end - from);
            size_t language = before.rfind("extern \"C\"");
            if (language != std::string::npos && trimmed(before.substr(language + 10)).empty()) before.erase(language);
            all += before + "static " + text.substr(at + 10, from - at - 10) + "emulated_kernel_" + name;
            names.insert(name);
            done = end;
        }
        return all + text.substr(done);
    }
};

// Runs a program; what it says goes to `log`.
bool run(const std::vector<std::string>& words, const std::string& log) {
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = 0;
    int failed = posix_spawnp(&child, pointers[0], &files, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    int status = 0;
    return !failed && waitpid(child, &status, 0) == child && status == 0;
}

bool compile(Program& program, const std::string& folder) {
    std::string own = own_folder(), log = folder + "/log";
    write(folder + "/kernel.cu", "#include \"device.h\"\n" + program.source);
    bool read_whole = run({"g++", "-E", "-P", "-std=c++17", "-w", "-I" + own, "-x", "c++", folder + "/kernel.cu",
        "-o", folder + "/read.cpp"}, log);
    if (!read_whole) return false;
    std::string device = read(own + "/device.h");
    Translation translation{device, ""};
    std::set<std::string> names;
    std::string text = Translation::kernels(Translation::shared_memory(translation.assembly(read(folder + "/read.cpp"))), names);
    text = translation.missing + text + "}\n";
    for (const std::string& name : names) {
        text += "extern \"C\" void emulated_run_" + name + "(void** arguments) { emulated_run(tw::emulated_kernel_" + name + ", arguments); }\n";
    }
    // So that there is such a section in every kernel's library.
    text += "__attribute__((section(\"emulated_shared\"), used)) static unsigned char emulated_nothing[16];\n";
    write(folder + "/kernel.cpp", text);
    std::vector<std::string> words = {"g++", "-shared", "-fPIC", "-std=c++17", "-fpermissive", "-w", "-O2", "-march=native",
        "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-fwrapv",
        "-fno-stack-protector", "-fcf-protection=none", "-fno-exceptions", "-fno-asynchronous-unwind-tables", "-s"};
    std::istringstream more(getenv("TILEWORK_EMULATOR_FLAGS") ? getenv("TILEWORK_EMULATOR_FLAGS") : "");
    for (std::string word; more >> word;) words.push_back(word);
    for (const char* word : {"-x", "c++", "-fpreprocessed"}) words.push_back(word);
    words.push_back(folder + "/kernel.cpp");
    for (const std::string& word : {std::string("-o"), folder + "/kernel.so"}) words.push_back(word);
    for (const char* word : {"-nodefaultlibs", "-lm", "-lc", "-lgcc"}) words.push_back(word);
    if (!run(words, log)) return false;
    program.code = read(folder + "/kernel.so");
    return true;
}

} // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { *major = 12; *minor = 9; return 0; }
int nvrtcGetNumSupportedArchs(int* count) { *count = 2; return 0; }
int nvrtcGetSupportedArchs(int* numbers) { numbers[0] = 80, numbers[1] = 90; return 0; }

int nvrtcCreateProgram(Program** to, const char* source, const char*, int, const char* const*, const char* const*) {
    *to = new Program{source, "", ""};
    return 0;
}
int nvrtcDestroyProgram(Program** program) {
    delete *program;
    *program = nullptr;
    return 0;
}
int nvrtcCompileProgram(Program* program, int, const char* const*) {
    const char* temporary = getenv("TMPDIR");
    std::string folder = std::string(temporary ? temporary : "/tmp") + "/tilework-emulator-XXXXXX";
    if (!mkdtemp(&folder[0])) {
        program->log = "there is no folder for temporary files";
        return 6;
    }
    bool compiled = compile(*program, folder);
    if (!compiled) program->log = read(folder + "/log").substr(0, 8000);
    // Kept for whoever looks for a mistake.
    if (!getenv("TILEWORK_EMULATOR_KEEP")) {
        for (const char* file : {"kernel.cu", "read.cpp", "kernel.cpp", "kernel.so", "log"}) unlink((folder + "/" + file).c_str());
        rmdir(folder.c_str());
    }
    return compiled ? 0 : 6;
}
int nvrtcGetCUBINSize(Program* program, size_t* bytes) { *bytes = program->code.size(); return 0; }
int nvrtcGetCUBIN(Program* program, char* to) { memcpy(to, program->code.data(), program->code.size()); return 0; }
int nvrtcGetProgramLogSize(Program* program, size_t* bytes) { *bytes = program->log.size() + 1; return 0; }
int nvrtcGetProgramLog(Program* program, char* to) { memcpy(to, program->log.c_str(), program->log.size() + 1); return 0; }

}
