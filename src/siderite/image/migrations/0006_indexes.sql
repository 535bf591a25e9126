-- No question looks for an image by its file: all of them are read, or one by its id.
DROP INDEX images_file;
