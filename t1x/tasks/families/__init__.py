"""The families of shell work that the synthetic pool is made of."""

from t1x.tasks.families import archives, files, lines, links, observation, permissions, scripts
from t1x.tasks.families.family import Family, Instance, Scene

TRAINED: tuple[Family, ...] = (
    files.create_file,
    files.make_folder,
    files.copy_into,
    files.back_up,
    files.rename,
    files.move_into,
    files.delete,
    lines.sort_lines,
    lines.keep_lines,
    lines.count_lines,
    lines.take_lines,
    lines.replace_word,
    lines.take_column,
    lines.upper_case,
    lines.append_line,
    lines.join_files,
    archives.pack,
    archives.unpack,
    permissions.set_mode,
    links.symbolic_link,
    scripts.write_script,
    scripts.run_script,
    observation.move_found,
    observation.delete_named,
    observation.move_only,
    observation.make_named,
    observation.mode_named,
)
"""In the splits demo, train, validation and held_out."""

HELD_OUT: tuple[Family, ...] = (
    files.make_directory,
    files.make_empty_file,
    lines.lower_case,
    lines.append_matches,
    observation.copy_named,
    observation.link_named,
    observation.append_found,
    observation.mode_of_only,
)
"""Only in the split held_out_families: parts of what is trained, and known pieces put together in new ways."""

__all__ = ["HELD_OUT", "TRAINED", "Family", "Instance", "Scene"]
