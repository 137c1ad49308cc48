// A program calls what it imports through a table, which the linker of the system fills when the program starts, and then keeps
// from being written.
#include "imports.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace {

#if defined(__x86_64__)
constexpr uint32_t kSlotTypes[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#elif defined(__aarch64__)
constexpr uint32_t kSlotTypes[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#endif

struct Replacement {
	const char* library;
	const char* name;
	void* function;
	bool is_done;
};

// What the program says of itself.
struct Program {
	uintptr_t base;
	const ElfW(Sym)* symbols = nullptr;
	const char* names = nullptr;
	// Slots that are filled at the first call, and those that are filled at the start.
	const ElfW(Rela)* tables[2] = {nullptr, nullptr};
	size_t sizes[2] = {0, 0};
	// Whole pages, as the linker seals them.
	uintptr_t sealed_from = 0, sealed_to = 0;

	// glibc has moved the addresses there by the base, musl has not.
	template <typename T>
	const T* At(ElfW(Addr) address) const {
		return reinterpret_cast<const T*>(address < base ? base + address : address);
	}
};

Program ReadProgram(const dl_phdr_info& info) {
	Program program = {.base = info.dlpi_addr};
	const ElfW(Dyn)* entry = nullptr;
	for (int index = 0; index < info.dlpi_phnum; index++) {
		const ElfW(Phdr)& header = info.dlpi_phdr[index];
		if (header.p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr);
		if (header.p_type == PT_GNU_RELRO) {
			uintptr_t mask = ~(static_cast<uintptr_t>(getauxval(AT_PAGESZ)) - 1);
			program.sealed_from = (info.dlpi_addr + header.p_vaddr) & mask;
			program.sealed_to = (info.dlpi_addr + header.p_vaddr + header.p_memsz) & mask;
		}
	}
	for (; entry != nullptr && entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
			case DT_SYMTAB: program.symbols = program.At<ElfW(Sym)>(entry->d_un.d_ptr); break;
			case DT_STRTAB: program.names = program.At<char>(entry->d_un.d_ptr); break;
			case DT_JMPREL: program.tables[0] = program.At<ElfW(Rela)>(entry->d_un.d_ptr); break;
			case DT_PLTRELSZ: program.sizes[0] = entry->d_un.d_val; break;
			case DT_RELA: program.tables[1] = program.At<ElfW(Rela)>(entry->d_un.d_ptr); break;
			case DT_RELASZ: program.sizes[1] = entry->d_un.d_val; break;
		}
	}
	return program;
}

bool IsSlot(uint32_t type) {
	for (uint32_t slot : kSlotTypes) if (type == slot) return true;
	return false;
}

bool Write(const Program& program, uintptr_t slot, void* function) {
	uintptr_t page_size = getauxval(AT_PAGESZ);
	void* page = reinterpret_cast<void*>(slot & ~(page_size - 1));
	bool is_sealed = slot >= program.sealed_from && slot < program.sealed_to;
	if (is_sealed && mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return false;
	*reinterpret_cast<void**>(slot) = function;
	if (is_sealed) mprotect(page, page_size, PROT_READ);
	return true;
}

bool IsOf(const dl_phdr_info& info, const char* library) {
	const char* slash = strrchr(info.dlpi_name, '/');
	return strncmp(slash == nullptr ? info.dlpi_name : slash + 1, library, strlen(library)) == 0;
}

// The first of all is the program. Goes on to the next until it returns 1.
int ReplaceIn(dl_phdr_info* info, size_t, void* data) {
	Replacement* replacement = static_cast<Replacement*>(data);
	int is_last = replacement->library == nullptr ? 1 : 0;
	if (is_last == 0 && !IsOf(*info, replacement->library)) return 0;
	Program program = ReadProgram(*info);
	if (program.symbols == nullptr || program.names == nullptr) return is_last;
	for (int table = 0; table < 2; table++) {
		size_t count = program.tables[table] == nullptr ? 0 : program.sizes[table] / sizeof(ElfW(Rela));
		for (size_t index = 0; index < count; index++) {
			const ElfW(Rela)& entry = program.tables[table][index];
			if (!IsSlot(ELF64_R_TYPE(entry.r_info))) continue;
			const char* name = program.names + program.symbols[ELF64_R_SYM(entry.r_info)].st_name;
			if (strcmp(name, replacement->name) != 0) continue;
			replacement->is_done |= Write(program, program.base + entry.r_offset, replacement->function);
		}
	}
	return is_last;
}

}  // namespace

bool ReplaceImport(const char* library, const char* name, void* function) {
	Replacement replacement = {library, name, function, false};
	dl_iterate_phdr(ReplaceIn, &replacement);
	return replacement.is_done;
}
